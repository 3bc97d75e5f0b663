#pragma once

#include <grpcpp/support/status.h>

#include <cstdint>
#include <string>

#include "client/message_json.h"
#include "client/request_flags.h"

namespace quire {

// One line of a batch's input: {"id"?, "prompt" or "messages", overrides...}.
struct BatchLine {
  int64_t number = 0;  // from 1
  std::string text;
  Json id;  // the line's own string or integer; "line-<number>" if it has none
};

BatchLine MakeBatchLine(int64_t number, std::string text);

// What a line asks for: `flags`, and over them what the line sets. INVALID_ARGUMENT names the key, the value
// and what is accepted.
grpc::Status ParseBatchRequest(const BatchLine& line, const RequestFlags& flags, v1::GenerateRequest& request);

}  // namespace quire
