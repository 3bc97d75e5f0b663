#pragma once

#include <optional>
#include <string>

namespace quire {

// All that is in the file at `path`; nothing if it can't be read, or is empty.
std::optional<std::string> FileText(const std::string& path);

}  // namespace quire
