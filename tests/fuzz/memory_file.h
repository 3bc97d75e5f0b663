#pragma once

#include <string>
#include <string_view>

namespace quire::testing {

// A file in memory, for code that wants a path. What has opened it must be gone before it is written again.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // In this process.
  const std::string& path() const { return path_; }
  // Replaces what is in it.
  void Write(std::string_view bytes);

 private:
  int fd_;
  std::string path_;
};

}  // namespace quire::testing
