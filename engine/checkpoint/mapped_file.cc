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

namespace quire {
namespace {

// Closes a file descriptor at the end of its scope.
class FileDescriptor {
 public:
  explicit FileDescriptor(int fd) : fd_(fd) {}
  ~FileDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;

  int get() const { return fd_; }

 private:
  int fd_;
};

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
  const FileDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) return FileError(path, errno);
  struct stat info{};
  if (fstat(file.get(), &info) != 0) return FileError(path, errno);
  if (S_ISDIR(info.st_mode)) return NotRegular(path, "a directory");
  if (!S_ISREG(info.st_mode)) return NotRegular(path, "something that is not a regular file");
  if (info.st_size == 0) return MappedFile(path, {});
  const auto size = static_cast<size_t>(info.st_size);
  void* data = mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.get(), 0);
  if (data == MAP_FAILED) return FileError(path, errno);
  return MappedFile(path, {static_cast<const std::byte*>(data), size});
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

void MappedFile::ReleasePages(std::span<const std::byte> range) const {
  if (range.empty()) return;
  const auto page_bytes = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto begin = reinterpret_cast<uintptr_t>(range.data()) / page_bytes * page_bytes;
  const auto end = reinterpret_cast<uintptr_t>(range.data() + range.size());
  // Only advice: whatever comes of it, the bytes stay readable.
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_DONTNEED);
}

}  // namespace quire
