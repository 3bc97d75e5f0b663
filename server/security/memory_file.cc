#include "server/security/memory_file.h"

#include <sys/mman.h>
#include <unistd.h>

#include "engine/base/check.h"
#include "engine/base/strings.h"

namespace quire {

MemoryFile::MemoryFile() : fd_(memfd_create("quire", MFD_CLOEXEC)), path_(StrCat("/proc/self/fd/", fd_)) {
  QUIRE_CHECK(fd_ >= 0);
}

MemoryFile::~MemoryFile() { close(fd_); }

void MemoryFile::Write(std::string_view bytes) const {
  QUIRE_CHECK(ftruncate(fd_, 0) == 0);
  const ssize_t written = pwrite(fd_, bytes.data(), bytes.size(), 0);
  QUIRE_CHECK(written == static_cast<ssize_t>(bytes.size()));
}

}  // namespace quire
