#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace quire {

// A file that is in memory only, for code that wants a path. Readers may have it open while it is written.
class MemoryFile {
 public:
  // RESOURCE_EXHAUSTED if the process may open no more files.
  static absl::StatusOr<std::unique_ptr<MemoryFile>> Create();

  ~MemoryFile();
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  // In this process, as long as the object lives.
  const std::string& path() const { return path_; }
  // Replaces what is in it. RESOURCE_EXHAUSTED if there is no memory for that.
  absl::Status Write(std::string_view bytes) const;

 private:
  explicit MemoryFile(int fd);

  const int fd_;
  const std::string path_;
};

}  // namespace quire
