#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/checkpoint/mapped_file.h"

namespace quire {

// Whether a file's first bytes are GGUF's.
bool IsGguf(std::span<const std::byte> bytes);

// A Checkpoint over a GGUF file of version 2 or 3, little-endian. Every size, count and offset is checked here;
// what is kept beside the mapping grows with the bytes the file really has, never with a count it claims.
absl::StatusOr<std::unique_ptr<Checkpoint>> OpenGguf(MappedFile file);

}  // namespace quire
