#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "client/command.h"

namespace quire {

// A streamed answer, put together, with the times at which this client saw its tokens.
struct Answer {
  v1::GenerateResponse response;  // one output
  std::chrono::steady_clock::time_point start;
  std::optional<std::chrono::steady_clock::time_point> first_token;
  std::optional<std::chrono::steady_clock::time_point> last_token;

  const std::string& text() const { return response.outputs(0).text(); }
};

// Sends `request` and fills `answer` as it comes, whatever the end. Without --json the text is written at
// once, and ends with a newline. OK means that the answer is whole.
grpc::Status StreamAnswer(const v1::GenerateRequest& request, CommandContext& context, Answer& answer);

// The answer as one flat object: request_id, model, text, token_ids, finish_reason, usage, timings, and the
// log-probabilities that were asked for.
Json AnswerJson(const v1::GenerateResponse& response);

// One line: tokens, time to first token, tokens per second, and why it ended.
std::string AnswerStats(const Answer& answer);

// One line for each output token with its log-probability and the alternatives.
std::string LogprobsTable(const v1::GenerateResponse& response);

}  // namespace quire
