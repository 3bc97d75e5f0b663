#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

// A regular file mapped for reading. Movable, not copyable; thread-safe once opened. The mapping is only as good
// as the file under it: a file that is cut short while mapped ends the process on the next read past its end.
class MappedFile {
 public:
  // NotFound or InvalidArgument, one sentence with the path. An empty file maps to no bytes.
  static absl::StatusOr<MappedFile> Open(const std::string& path);

  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  const std::string& path() const { return path_; }
  std::span<const std::byte> bytes() const { return bytes_; }

  // Tells the kernel that the pages under `range`, a part of bytes(), may leave memory; reading brings them back.
  void ReleasePages(std::span<const std::byte> range) const;

 private:
  MappedFile(std::string path, std::span<const std::byte> bytes) : path_(std::move(path)), bytes_(bytes) {}

  std::string path_;
  std::span<const std::byte> bytes_;
};

}  // namespace quire
