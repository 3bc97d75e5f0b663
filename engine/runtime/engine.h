#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/clock.h"
#include "engine/base/generation_types.h"
#include "engine/base/ids.h"
#include "engine/kv_cache/kv_cache_manager.h"
#include "engine/runtime/batch_sampler.h"
#include "engine/runtime/engine_observer.h"
#include "engine/runtime/engine_stats.h"
#include "engine/runtime/generation.h"
#include "engine/runtime/model_runner.h"
#include "engine/runtime/request_validation.h"
#include "engine/scheduler/scheduler.h"

namespace quire {

// All that an engine works with. The scheduler is built over `kv_cache` and `clock`.
struct EngineDependencies {
  const Clock* clock = nullptr;  // outlives the engine
  std::unique_ptr<KvCacheManager> kv_cache;
  std::unique_ptr<Scheduler> scheduler;  // after kv_cache: destroyed before it
  std::unique_ptr<ModelRunner> model_runner;
  std::vector<TokenId> end_of_generation_ids;  // the union of all that the model declares
  uint64_t seed = 0;                           // of the seeds of requests that bring none
};

enum class StepOutcome {
  kIdle,    // there was nothing to compute
  kRan,     // a step was computed and committed
  kFailed,  // the model failed: the plan's requests ended with INTERNAL, all others stand as before
};

// The engine's single-threaded core: requests in, one step at a time, tokens out to their sinks. Knows no thread, no
// lock and no text. Every request that was added gets exactly one OnFinish.
class Engine {
 public:
  explicit Engine(EngineDependencies dependencies);
  // Ends what still runs with UNAVAILABLE.
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // What ValidateRequest must have found good before AddRequest.
  const EngineLimits& limits() const { return limits_; }
  const Clock& clock() const { return *clock_; }

  // Told what happens within steps from now on; null: nobody is. Must outlive the last step.
  void SetObserver(EngineObserver* observer) { observer_ = observer; }

  // What tenants may use from now on; see Scheduler::SetTenantLimits.
  void SetTenantLimits(TenantLimitsByName tenants);

  // Puts a validated request at the end of the queue. `id` is new.
  void AddRequest(RequestId id, GenerationRequest request);

  // Ends a request and frees its blocks at once; no-op if it has ended. `status` is not OK.
  void Cancel(RequestId id, const absl::Status& status);
  void CancelAll(const absl::Status& status);
  // An end with OK that was found outside. Output tokens past `num_output_tokens` do not count.
  void Finish(RequestId id, FinishReason reason, int64_t num_output_tokens);

  // Expire deadlines, plan, execute, sample, commit, emit. README.md tells the stages.
  StepOutcome Step();

  bool HasWork() const { return scheduler_->HasWork(); }
  // Requests that could run beside those that do, if there are blocks for them.
  int64_t num_free_seats() const { return scheduler_->config().max_num_seqs - scheduler_->num_running(); }
  int64_t max_num_seqs() const { return scheduler_->config().max_num_seqs; }
  // Share of the KV cache's blocks that requests own.
  double kv_cache_use() const {
    return 1 - static_cast<double>(kv_cache_->num_available_blocks()) / static_cast<double>(kv_cache_->num_blocks());
  }
  int64_t num_waiting() const { return scheduler_->num_waiting(); }
  int64_t num_waiting_tokens() const { return scheduler_->num_waiting_tokens(); }
  int64_t num_steps() const { return num_steps_; }
  // What the last step computed.
  int64_t num_step_tokens() const { return plan_.num_tokens; }
  int64_t num_finished_requests() const { return num_finished_requests_; }
  EngineStats Stats(bool with_requests) const;
  // What the next step may take, by the slowest of the last ones; 0 before any.
  double predicted_step_seconds() const { return scheduler_->step_length().predicted_seconds(); }

  // Forgets all prefixes; returns how many cached blocks are free now.
  int64_t ClearPrefixCache() { return kv_cache_->ClearPrefixCache(); }

  // Validates scheduler and cache, logs and counts what is violated, and returns it.
  std::vector<std::string> CheckInvariants();

 private:
  void EnterStage(StepStage stage) {
    if (observer_ != nullptr) observer_->OnStage(stage);
  }
  void ExpireDeadlines();
  void FailStep(const absl::Status& status);
  // Fills results_ and sampled_. A request that fails ends here.
  void SampleAll(MatrixView<float> logits);
  void CountTokens(const ScheduledRequest& scheduled, const StepResult& result);
  void EmitAll();
  FinishReason ReasonToFinish(const Request& request, TokenId token) const;
  void AddHoldings(EngineStats* stats) const;
  void End(RequestId id, const absl::Status& status, FinishReason reason, int64_t max_counted_tokens);

  const Clock* const clock_;
  EngineObserver* observer_ = nullptr;
  const std::unique_ptr<KvCacheManager> kv_cache_;
  const std::unique_ptr<Scheduler> scheduler_;
  const std::unique_ptr<ModelRunner> model_runner_;
  EngineLimits limits_;
  const std::vector<TokenId> end_of_generation_ids_;
  const uint64_t seed_;

  BatchSampler sampler_;

  // Of the current step; reused.
  StepPlan plan_;
  std::span<StepResult> results_;  // the sampler's
  std::vector<TokenId> sampled_;   // one for each plan entry with samples_token
  std::vector<RequestId> expired_;

  int64_t num_steps_ = 0;
  int64_t num_failed_steps_ = 0;
  int64_t num_prompt_tokens_ = 0;
  int64_t num_output_tokens_ = 0;
  int64_t num_finished_requests_ = 0;
  int64_t num_invariant_violations_ = 0;
};

}  // namespace quire
