#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <optional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/cost_model.h"
#include "bench/manual_clock.h"
#include "bench/trace.h"
#include "engine/kv_cache/kv_cache_manager.h"
#include "engine/scheduler/scheduler.h"

namespace quire {

struct SimulationConfig {
  SchedulerConfig scheduler;
  KvCacheConfig cache = {.num_blocks = 1024, .block_size = 16, .enable_prefix_caching = true};
  CostModel cost;
  // Requests at once: the next of the trace comes when one ends. Unset: they come at their arrival_seconds.
  std::optional<int64_t> concurrency;
};

enum class RequestEnd { kFinished, kCancelled, kRefused };

// What became of one request; times are since the simulation's start.
struct RequestOutcome {
  RequestEnd end = RequestEnd::kRefused;
  double arrival_seconds = 0;
  double end_seconds = 0;
  std::optional<double> first_scheduled_seconds;
  std::optional<double> first_token_seconds;
  int64_t num_output_tokens = 0;
  int64_t num_cached_tokens = 0;  // found in the prefix cache at its first admission
  int64_t num_preemptions = 0;
};

struct SimulationResult {
  std::vector<RequestOutcome> requests;  // as the trace
  double seconds = 0;                    // virtual, from start to the last end
  int64_t num_steps = 0;
  int64_t num_computed_tokens = 0;    // over all steps
  int64_t num_recomputed_tokens = 0;  // of those, computed for their request before
  int64_t num_preemptions = 0;
  double used_block_seconds = 0;   // integral over time
  double wasted_slot_seconds = 0;  // of slots of used blocks that hold no computed token
  KvCacheUsage final_usage;
};

// The scheduler and the cache's bookkeeping as they serve, with a model that only takes virtual time and says the
// trace's tokens. One thread; the same trace and configuration give the same result.
class Simulator {
 public:
  // `trace` must outlive it. `config.scheduler` must be valid.
  Simulator(const SimulationConfig& config, const Trace& trace);

  // Runs the whole trace, once. INTERNAL if the scheduler stands still with requests left.
  absl::StatusOr<SimulationResult> Run();

 private:
  double Now() const { return ToSeconds(clock_.Now() - TimePoint()); }
  void AdvanceTo(double seconds);

  // What has its time by now: arrivals, then cancellations.
  void DeliverEvents();
  // Submits a request, or keeps it until the conversation's turn before it has ended.
  void Arrive(int64_t index);
  void Submit(int64_t index);
  void End(int64_t index, RequestEnd end);
  std::optional<double> NextEventSeconds() const;

  void RunStep(const StepPlan& plan);
  void CountTokens(const StepPlan& plan);
  void MeasurePool(double step_seconds);
  void RemoveComplete(const StepPlan& plan);
  const TraceRequest& TraceOf(int64_t index) const { return trace_[static_cast<size_t>(index)]; }
  RequestOutcome& OutcomeOf(int64_t index) { return result_.requests[static_cast<size_t>(index)]; }

  const SimulationConfig config_;
  const Trace& trace_;
  ManualClock clock_;
  KvCacheManager cache_;
  Scheduler scheduler_;
  SimulationResult result_;

  int64_t next_arrival_ = 0;  // in the trace
  int64_t num_in_flight_ = 0;
  using Cancellation = std::pair<double, int64_t>;  // when, and of which request
  std::priority_queue<Cancellation, std::vector<Cancellation>, std::greater<>> cancellations_;
  // Conversations with a turn in flight, and the turns that wait for its end.
  std::map<int64_t, std::deque<int64_t>> later_turns_;
  std::set<int64_t> started_;  // in flight, and planned at least once
  // For MeasurePool: computed tokens in each block, valid if its stamp is the step's.
  std::vector<int64_t> block_tokens_;  // [num_blocks]
  std::vector<int64_t> block_stamps_;  // [num_blocks]
  std::vector<TokenId> sampled_;
};

}  // namespace quire
