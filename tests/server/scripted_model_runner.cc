#include "tests/server/scripted_model_runner.h"

namespace quire::testing {

absl::StatusOr<MatrixView<float>> ScriptedModelRunner::Execute(const StepPlan& plan) {
  if (on_execute_) on_execute_();
  ++num_steps_;
  logits_.assign(static_cast<size_t>(plan.num_logits_rows * vocab_size_), 0.0F);
  int64_t row = 0;
  for (const ScheduledRequest& request : plan.requests) {
    row += request.num_logits_rows();
    if (!request.samples_token) continue;
    const int64_t position = request.first_position + request.num_scheduled_tokens() - 1;
    const int64_t first = first_sampled_position_.try_emplace(request.request_id, position).first->second;
    const TokenId token = script_[static_cast<size_t>(position - first) % script_.size()];
    logits_[static_cast<size_t>((row - 1) * vocab_size_ + token)] = 10.0F;
  }
  return MatrixView<float>(logits_.data(), plan.num_logits_rows, vocab_size_);
}

}  // namespace quire::testing
