#pragma once

#include <span>
#include <string_view>

#include "absl/status/status.h"

namespace quire {

// A field, or the beginning of one's path, as the engine and the prompt encoder call it, and as a protocol does.
struct FieldName {
  std::string_view ours;
  std::string_view theirs;
};

// An error that names a field, with the protocol's name: the first of `names` that fits counts, else a sampling
// parameter loses its "sampling.". Other errors stay as they are.
absl::Status WithFieldNames(const absl::Status& status, std::span<const FieldName> names);

}  // namespace quire
