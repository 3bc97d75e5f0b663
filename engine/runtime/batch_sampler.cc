#include "engine/runtime/batch_sampler.h"

#include <algorithm>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/status.h"
#include "engine/sampling/logprobs.h"

namespace quire {
namespace {

// More would take a megabyte or two each, and save little beside a step of so many requests.
int64_t NumSamplingThreads(int64_t num_threads) {
  constexpr int64_t kMost = 8;
  return std::min(num_threads, kMost);
}

// Log-probabilities of the prompt tokens that follow the positions of `logits`.
absl::Status CollectPromptLogprobs(const Request& request, const ScheduledRequest& scheduled, MatrixView<float> logits,
                                   SamplingScratch* scratch, std::vector<PositionLogprobs>* collected) {
  const int64_t num_rows = logits.rows - (scheduled.samples_token ? 1 : 0);
  collected->reserve(num_rows);
  for (int64_t row = 0; row < num_rows; ++row) {
    const int64_t next_position = scheduled.first_position + scheduled.first_logits_row + row + 1;
    QUIRE_ASSIGN_OR_RETURN(PositionLogprobs logprobs, ComputeLogprobs(logits.row(row), request.token_ids[next_position],
                                                                      *request.sampling.num_prompt_logprobs, scratch));
    collected->push_back(std::move(logprobs));
  }
  return absl::OkStatus();
}

}  // namespace

BatchSampler::BatchSampler(ModelRunner* runner) : runner_(runner) {
  const int64_t num_threads = NumSamplingThreads(runner->num_threads());
  for (int64_t i = 0; i < num_threads; ++i) scratches_.emplace_back(runner->vocab_size());
}

int64_t BatchSampler::BytesFor(int64_t num_threads, int64_t vocab_size) {
  return NumSamplingThreads(num_threads) * SamplingScratch::BytesFor(vocab_size);
}

void BatchSampler::Add(RequestId id, const SamplingParams& params, uint64_t seed,
                       std::shared_ptr<TokenConstraint> constraint) {
  states_.emplace(id, State{Sampler(params, seed, runner_->vocab_size()), std::move(constraint)});
}

std::span<StepResult> BatchSampler::Sample(const StepPlan& plan, MatrixView<float> logits, const Scheduler& scheduler) {
  QUIRE_CHECK_EQ(logits.rows, plan.num_logits_rows);
  QUIRE_CHECK_EQ(logits.cols, runner_->vocab_size());
  logits_.clear();
  results_.clear();
  int64_t first_row = 0;
  for (const ScheduledRequest& scheduled : plan.requests) {
    const int64_t end_row = first_row + scheduled.num_logits_rows();
    logits_.push_back(logits.row_range(first_row, end_row));
    results_.push_back({.request_id = scheduled.request_id});
    first_row = end_row;
  }
  const auto sample = [&](int64_t i, int64_t thread) {
    const ScheduledRequest& scheduled = plan.requests[i];
    results_[i].status =
        SampleRequest(*scheduler.Find(scheduled.request_id), scheduled, logits_[i], &scratches_[thread], &results_[i]);
  };
  runner_->ForEach(static_cast<int64_t>(results_.size()), static_cast<int64_t>(scratches_.size()), sample);
  return results_;
}

absl::Status BatchSampler::SampleRequest(const Request& request, const ScheduledRequest& scheduled,
                                         MatrixView<float> logits, SamplingScratch* scratch, StepResult* result) {
  if (request.awaits_prompt_logprobs()) {
    QUIRE_RETURN_IF_ERROR(CollectPromptLogprobs(request, scheduled, logits, scratch, &result->prompt_logprobs));
  }
  if (!scheduled.samples_token) return absl::OkStatus();
  State& state = states_.at(request.id);
  const std::span<const float> row = logits.row(logits.rows - 1);
  OutputToken& token = result->token;
  QUIRE_ASSIGN_OR_RETURN(token.token_id, state.sampler.Sample(row, request.token_ids, request.num_output_tokens(),
                                                              state.constraint.get(), scratch));
  if (request.sampling.num_logprobs) {
    QUIRE_ASSIGN_OR_RETURN(token.logprobs,
                           ComputeLogprobs(row, token.token_id, *request.sampling.num_logprobs, scratch));
  }
  if (state.constraint != nullptr) state.constraint->Accept(token.token_id);
  result->has_token = true;
  return absl::OkStatus();
}

}  // namespace quire
