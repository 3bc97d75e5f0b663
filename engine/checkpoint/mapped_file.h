#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

// A regular file, mapped for reading and open for Read. Movable, not copyable; const methods are thread-safe. The
// mapping is only as good as the file under it: a file that is cut short while mapped ends the process on the next
// look past its end. So large parts are read, and the mapping is kept to what must be looked at in place.
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

  // Unmaps what lies past the first `num_bytes` bytes, as far as whole pages go; bytes() are these from here on.
  void KeepFirst(int64_t num_bytes);

  // Fills `out` with the file's bytes from `offset_bytes` on, mapped or not. DataLoss if the file ends before.
  absl::Status Read(int64_t offset_bytes, std::span<std::byte> out) const;

 private:
  MappedFile(std::string path, int fd, std::span<const std::byte> bytes)
      : path_(std::move(path)), fd_(fd), bytes_(bytes) {}

  std::string path_;
  int fd_;  // -1 after a move
  std::span<const std::byte> bytes_;
};

}  // namespace quire
