#include "engine/checkpoint/checkpoint.h"

#include <algorithm>
#include <format>
#include <utility>

#include "engine/base/status.h"
#include "engine/checkpoint/byte_cursor.h"
#include "engine/checkpoint/gguf.h"
#include "engine/checkpoint/mapped_file.h"

namespace quire {
namespace {

absl::Status UnknownFormat(const MappedFile& file) {
  const std::span<const std::byte> bytes = file.bytes();
  if (bytes.empty()) {
    return absl::InvalidArgumentError(std::format("{}: expected a GGUF file, found an empty file", file.path()));
  }
  const std::string_view start(reinterpret_cast<const char*>(bytes.data()), std::min<size_t>(bytes.size(), 4));
  return absl::InvalidArgumentError(
      std::format("{}: expected a GGUF file, which begins with \"GGUF\", found \"{}\"", file.path(), Printable(start)));
}

}  // namespace

int64_t CheckpointTensor::num_elements() const {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

absl::StatusOr<std::unique_ptr<Checkpoint>> OpenCheckpoint(const std::string& path) {
  QUIRE_ASSIGN_OR_RETURN(MappedFile file, MappedFile::Open(path));
  if (!IsGguf(file.bytes())) return UnknownFormat(file);
  return OpenGguf(std::move(file));
}

}  // namespace quire
