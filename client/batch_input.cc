#include "client/batch_input.h"

#include <filesystem>
#include <unordered_map>
#include <utility>

namespace quire {
namespace {

grpc::Status Invalid(const std::string& message) { return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, message); }

}  // namespace

grpc::Status BatchInput::Open(const std::string& path, std::unique_ptr<BatchInput>& input) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) {
    return Invalid("--input: " + path + " is not a file");
  }
  std::unique_ptr<BatchInput> opened(new BatchInput(path));
  if (!opened->file_.is_open()) {
    return Invalid("--input: " + path + " cannot be read");
  }
  if (grpc::Status status = opened->CountLines(path); !status.ok()) {
    return status;
  }
  input = std::move(opened);
  return grpc::Status::OK;
}

grpc::Status BatchInput::CountLines(const std::string& path) {
  std::unordered_map<std::string, int64_t> line_of_id;
  while (const auto line = ReadLine()) {
    ++num_lines_;
    const auto [known, is_new] = line_of_id.emplace(line->id.dump(), line->number);
    if (!is_new) {
      return Invalid("--input: " + path + " has the id " + known->first + " in line " + std::to_string(known->second) +
                     " and in line " + std::to_string(line->number));
    }
  }
  file_.clear();
  file_.seekg(0);
  line_number_ = 0;
  return grpc::Status::OK;
}

std::optional<BatchLine> BatchInput::Next() {
  const std::lock_guard lock(mutex_);
  return ReadLine();
}

std::optional<BatchLine> BatchInput::ReadLine() {
  std::string text;
  while (std::getline(file_, text)) {
    ++line_number_;
    if (text.find_first_not_of(" \t\r") != std::string::npos) {
      return MakeBatchLine(line_number_, std::move(text));
    }
  }
  return std::nullopt;
}

}  // namespace quire
