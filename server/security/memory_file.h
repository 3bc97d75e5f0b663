#pragma once

#include <string>
#include <string_view>

namespace quire {

// A file that is in memory only, for code that wants a path. Readers may have it open while it is written.
class MemoryFile {
 public:
  MemoryFile();
  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // In this process, as long as the object lives.
  const std::string& path() const { return path_; }
  // Replaces what is in it.
  void Write(std::string_view bytes) const;

 private:
  const int fd_;
  const std::string path_;
};

}  // namespace quire
