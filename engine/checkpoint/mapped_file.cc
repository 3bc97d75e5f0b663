#include "engine/checkpoint/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <format>
#include <string_view>
#include <utility>

#include "engine/base/math.h"

namespace quire {
namespace {

absl::Status FileError(const std::string& path, int error) {
  if (error == ENOENT || error == ENOTDIR) {
    return absl::NotFoundError(std::format("{}: expected a model file, found nothing at this path", path));
  }
  return absl::InvalidArgumentError(
      std::format("{}: expected a readable model file, found an error: {}", path, std::strerror(error)));
}

absl::Status NotRegular(const std::string& path, std::string_view found) {
  return absl::InvalidArgumentError(std::format("{}: expected a model file, found {}", path, found));
}

}  // namespace

absl::StatusOr<MappedFile> MappedFile::Open(const std::string& path) {
  // Without O_NONBLOCK the opening of a pipe would wait for a writer.
  MappedFile file(path, open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK), {});
  if (file.fd_ < 0) return FileError(path, errno);
  struct stat info{};
  if (fstat(file.fd_, &info) != 0) return FileError(path, errno);
  if (S_ISDIR(info.st_mode)) return NotRegular(path, "a directory");
  if (!S_ISREG(info.st_mode)) return NotRegular(path, "something that is not a regular file");
  if (info.st_size == 0) return file;
  const auto size = static_cast<size_t>(info.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.fd_, 0);
  if (data == MAP_FAILED) return FileError(path, errno);
  file.bytes_ = {static_cast<const std::byte*>(data), size};
  return file;
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
  if (fd_ >= 0) close(fd_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(fd_, other.fd_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void MappedFile::KeepFirst(int64_t num_bytes) {
  const int64_t kept_bytes = AlignUp<int64_t>(num_bytes, sysconf(_SC_PAGESIZE));
  const auto mapped_bytes = static_cast<int64_t>(bytes_.size());
  if (kept_bytes >= mapped_bytes) return;
  munmap(const_cast<std::byte*>(bytes_.data()) + kept_bytes, static_cast<size_t>(mapped_bytes - kept_bytes));
  bytes_ = bytes_.first(static_cast<size_t>(kept_bytes));
}

absl::Status MappedFile::Read(int64_t offset_bytes, std::span<std::byte> out) const {
  while (!out.empty()) {
    const ssize_t num_read = pread(fd_, out.data(), out.size(), offset_bytes);
    if (num_read < 0 && errno == EINTR) continue;
    if (num_read <= 0) {
      return absl::DataLossError(std::format("{}: expected {} bytes at byte {}, found {}", path_, out.size(),
                                             offset_bytes,
                                             num_read == 0 ? "the end of the file, which was cut short since it was "
                                                             "opened"
                                                           : std::strerror(errno)));
    }
    out = out.subspan(static_cast<size_t>(num_read));
    offset_bytes += num_read;
  }
  return absl::OkStatus();
}

}  // namespace quire
