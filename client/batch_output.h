#pragma once

#include <grpcpp/support/status.h>

#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>

#include "client/message_json.h"

namespace quire {

// A batch's output file: one record a line, {"id", ...} with "text" or "error". What was answered before stays
// and is not asked again; errors and a torn last line of an earlier run are taken out. Thread-safe.
class BatchOutput {
 public:
  // INVALID_ARGUMENT: it cannot be written, another process writes it, or it holds something else.
  static grpc::Status Open(const std::string& path, std::unique_ptr<BatchOutput>& output);
  ~BatchOutput();
  BatchOutput(const BatchOutput&) = delete;
  BatchOutput& operator=(const BatchOutput&) = delete;

  // Whether an earlier run answered it.
  bool IsDone(const Json& id) const { return done_.contains(id.dump()); }

  // Writes a whole line or nothing.
  grpc::Status Append(const Json& record);

 private:
  BatchOutput(std::string path, int fd) : path_(std::move(path)), fd_(fd) {}

  // Fills done_ and tells whether the file must be rewritten.
  grpc::Status ReadRecords(bool& needs_repair);
  // Replaces the file by its answered records alone.
  grpc::Status Repair();

  const std::string path_;
  std::mutex mutex_;
  int fd_;
  std::unordered_set<std::string> done_;
};

}  // namespace quire
