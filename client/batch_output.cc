#include "client/batch_output.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <utility>

namespace quire {
namespace {

enum class RecordKind { kAnswer, kError, kOther };

grpc::Status Invalid(const std::string& path, const std::string& what) {
  return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "--output: " + path + " " + what);
}

grpc::Status CannotWrite(const std::string& path) {
  return Invalid(path, std::string("cannot be written: ") + std::strerror(errno));
}

RecordKind KindOf(const std::string& line, std::string& id) {
  const Json record = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!record.is_object() || !record.contains("id")) {
    return RecordKind::kOther;
  }
  id = record["id"].dump();
  if (record.contains("error")) {
    return RecordKind::kError;
  }
  return record.contains("text") ? RecordKind::kAnswer : RecordKind::kOther;
}

// All of `bytes`, or false.
bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t num_written = write(fd, bytes.data(), bytes.size());
    if (num_written < 0 && errno != EINTR) {
      return false;
    }
    bytes.remove_prefix(num_written > 0 ? static_cast<size_t>(num_written) : 0);
  }
  return true;
}

}  // namespace

grpc::Status BatchOutput::Open(const std::string& path, std::unique_ptr<BatchOutput>& output) {
  const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (fd < 0) {
    return CannotWrite(path);
  }
  // A link keeps its place: what is replaced is the file behind it.
  std::error_code ignored;
  const std::filesystem::path real_path = std::filesystem::canonical(path, ignored);
  std::unique_ptr<BatchOutput> opened(new BatchOutput(real_path.string(), fd));
  struct stat info;
  if (fstat(fd, &info) != 0 || !S_ISREG(info.st_mode)) {
    return Invalid(path, "is not a file");
  }
  if (flock(fd, LOCK_EX | LOCK_NB) != 0) {
    return Invalid(path, "is being written by another process");
  }
  bool needs_repair = false;
  grpc::Status status = opened->ReadRecords(needs_repair);
  if (status.ok() && needs_repair) {
    status = opened->Repair();
  }
  if (status.ok()) {
    output = std::move(opened);
  }
  return status;
}

BatchOutput::~BatchOutput() { close(fd_); }

grpc::Status BatchOutput::ReadRecords(bool& needs_repair) {
  std::ifstream file(path_);
  std::string line;
  std::string id;
  for (int64_t number = 1; std::getline(file, line); ++number) {
    // Only the last line can lack its end: an earlier run was killed while it wrote.
    const bool is_torn = file.eof();
    const RecordKind kind = KindOf(line, id);
    if (kind == RecordKind::kOther && !is_torn) {
      return Invalid(path_, "holds something else than answers in line " + std::to_string(number));
    }
    if (kind == RecordKind::kAnswer) {
      done_.insert(id);
    }
    needs_repair |= is_torn || kind == RecordKind::kError;
  }
  return grpc::Status::OK;
}

grpc::Status BatchOutput::Repair() {
  const std::string new_path = path_ + ".quire-tmp";
  const int new_fd = open(new_path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (new_fd < 0) {
    return CannotWrite(new_path);
  }
  std::ifstream file(path_);
  std::string line;
  std::string id;
  bool is_written = true;
  while (is_written && std::getline(file, line)) {
    if (KindOf(line, id) == RecordKind::kAnswer) {
      is_written = WriteAll(new_fd, line + "\n");
    }
  }
  struct stat info;
  is_written = is_written && fstat(fd_, &info) == 0 && fchmod(new_fd, info.st_mode & 07777) == 0 &&
               flock(new_fd, LOCK_EX | LOCK_NB) == 0 && fsync(new_fd) == 0 &&
               std::rename(new_path.c_str(), path_.c_str()) == 0;
  if (!is_written) {
    const grpc::Status status = CannotWrite(new_path);
    close(new_fd);
    unlink(new_path.c_str());
    return status;
  }
  close(std::exchange(fd_, new_fd));
  return grpc::Status::OK;
}

grpc::Status BatchOutput::Append(const Json& record) {
  const std::string line = JsonLine(record, /*ascii_only=*/false);
  const std::lock_guard lock(mutex_);
  const off_t size_bytes = lseek(fd_, 0, SEEK_END);
  if (WriteAll(fd_, line)) {
    return grpc::Status::OK;
  }
  const grpc::Status status = CannotWrite(path_);
  // A disk that is full leaves half a line; the next run would mend it too, if this cannot.
  [[maybe_unused]] const int ignored = ftruncate(fd_, size_bytes);
  return status;
}

}  // namespace quire
