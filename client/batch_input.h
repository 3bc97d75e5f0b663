#pragma once

#include <grpcpp/support/status.h>

#include <fstream>
#include <memory>
#include <mutex>
#include <optional>
#include <string>

#include "client/batch_line.h"

namespace quire {

// A batch's input file, read line by line. Blank lines are skipped. Thread-safe.
class BatchInput {
 public:
  // Reads the file once to count its lines. INVALID_ARGUMENT: it cannot be read, or an id stands in two lines.
  static grpc::Status Open(const std::string& path, std::unique_ptr<BatchInput>& input);

  std::optional<BatchLine> Next();

  int64_t num_lines() const { return num_lines_; }

 private:
  explicit BatchInput(const std::string& path) : file_(path) {}
  std::optional<BatchLine> ReadLine();
  grpc::Status CountLines(const std::string& path);

  std::mutex mutex_;
  std::ifstream file_;
  int64_t line_number_ = 0;
  int64_t num_lines_ = 0;
};

}  // namespace quire
