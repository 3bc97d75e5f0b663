#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/generation_types.h"
#include "engine/base/ids.h"
#include "engine/base/token_constraint.h"
#include "engine/runtime/model_runner.h"
#include "engine/sampling/sampler.h"
#include "engine/scheduler/scheduler.h"
#include "engine/scheduler/step_plan.h"

namespace quire {

// What a step made for a request, until it is committed and may be emitted.
struct StepResult {
  RequestId request_id{};
  absl::Status status = absl::OkStatus();  // INTERNAL: its logits are broken, and nothing else of it counts
  std::vector<PositionLogprobs> prompt_logprobs = {};
  OutputToken token = {};
  bool has_token = false;
};

// Samples a step's requests side by side on the model's threads, and keeps for each what sampling keeps beside what the
// scheduler does.
class BatchSampler {
 public:
  // `runner` must outlive it.
  explicit BatchSampler(ModelRunner* runner);
  // What its threads take, where the model runs on `num_threads`.
  static int64_t BytesFor(int64_t num_threads, int64_t vocab_size);

  // A request's way: known before it is first scheduled, forgotten when it ends.
  void Add(RequestId id, const SamplingParams& params, uint64_t seed, std::shared_ptr<TokenConstraint> constraint);
  void Remove(RequestId id) { states_.erase(id); }

  // The results of a plan's requests, in its order, from its logits. // [plan.num_logits_rows, vocab_size]
  // They are the caller's to take from, until the next call.
  std::span<StepResult> Sample(const StepPlan& plan, MatrixView<float> logits, const Scheduler& scheduler);

 private:
  struct State {
    Sampler sampler;
    std::shared_ptr<TokenConstraint> constraint;
  };

  // Of one request, from its own rows. On several threads at once, for different requests.
  absl::Status SampleRequest(const Request& request, const ScheduledRequest& scheduled, MatrixView<float> logits,
                             SamplingScratch* scratch, StepResult* result);

  ModelRunner* const runner_;
  std::vector<SamplingScratch> scratches_;  // one for each thread
  std::unordered_map<RequestId, State> states_;
  std::vector<MatrixView<float>> logits_;  // of the step's requests
  std::vector<StepResult> results_;
};

}  // namespace quire
