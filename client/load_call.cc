#include "client/load_call.h"

#include <utility>

namespace quire {
namespace {

double Seconds(std::chrono::steady_clock::duration duration) { return std::chrono::duration<double>(duration).count(); }

}  // namespace

std::optional<double> LoadMeasurement::SecondsPerOutputToken() const {
  if (!first_token_seconds || num_output_tokens < 2) {
    return std::nullopt;
  }
  double sum = 0;
  for (const double gap : gap_seconds) {
    sum += gap;
  }
  return sum / static_cast<double>(num_output_tokens - 1);
}

LoadCall::LoadCall(const PlannedRequest& planned) : cancel_after_tokens_(planned.cancel_after_tokens) {
  measurement_.tenant = planned.tenant;
  measurement_.num_prompt_tokens = static_cast<int64_t>(planned.token_ids.size());
}

bool LoadCall::OnSending() {
  start_ = std::chrono::steady_clock::now();
  measurement_.cancelled_by_client = cancel_after_tokens_ == 0;
  return !measurement_.cancelled_by_client;
}

bool LoadCall::OnTokens(int64_t num_tokens) {
  const SteadyTime now = std::chrono::steady_clock::now();
  if (!measurement_.first_token_seconds) {
    measurement_.first_token_seconds = Seconds(now - start_);
  } else {
    measurement_.gap_seconds.push_back(Seconds(now - last_tokens_));
  }
  last_tokens_ = now;
  measurement_.num_output_tokens += num_tokens;
  if (cancel_after_tokens_ && measurement_.num_output_tokens >= *cancel_after_tokens_) {
    measurement_.cancelled_by_client = true;
  }
  return !measurement_.cancelled_by_client;
}

void LoadCall::OnEnded(grpc::StatusCode status, std::string message) {
  measurement_.status = status;
  measurement_.message = std::move(message);
  measurement_.total_seconds = Seconds(std::chrono::steady_clock::now() - start_);
}

}  // namespace quire
