#include "tests/fuzz/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/check.h"

namespace quire::testing {

MemoryFile::MemoryFile() : fd_(memfd_create("input", MFD_CLOEXEC)), path_("/proc/self/fd/" + std::to_string(fd_)) {
  QUIRE_CHECK(fd_ >= 0);
}

MemoryFile::~MemoryFile() { close(fd_); }

void MemoryFile::Write(std::string_view bytes) {
  QUIRE_CHECK(ftruncate(fd_, 0) == 0);
  QUIRE_CHECK(pwrite(fd_, bytes.data(), bytes.size(), 0) == static_cast<ssize_t>(bytes.size()));
}

}  // namespace quire::testing
