#include "server/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "engine/base/strings.h"

namespace quire {
namespace {

constexpr const char* kName = "quire";

absl::Status NoMemoryFile() {
  return absl::ResourceExhaustedError(StrCat("a file in memory can't be had: ", std::strerror(errno)));
}

}  // namespace

absl::StatusOr<std::unique_ptr<MemoryFile>> MemoryFile::Create() {
  const int fd = memfd_create(kName, MFD_CLOEXEC);
  if (fd < 0) return NoMemoryFile();
  return std::unique_ptr<MemoryFile>(new MemoryFile(fd));
}

MemoryFile::MemoryFile(int fd) : fd_(fd), path_(StrCat("/proc/self/fd/", fd)) {}

MemoryFile::~MemoryFile() { close(fd_); }

// The old end is cut off last, so that without memory nothing of the old content has been lost to it.
absl::Status MemoryFile::Write(std::string_view bytes) const {
  const auto size = static_cast<ssize_t>(bytes.size());
  if (pwrite(fd_, bytes.data(), bytes.size(), 0) != size || ftruncate(fd_, size) != 0) return NoMemoryFile();
  return absl::OkStatus();
}

}  // namespace quire
