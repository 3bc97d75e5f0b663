#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/kv_cache/kv_cache_manager.h"
#include "engine/scheduler/request.h"
#include "engine/scheduler/scheduler_config.h"
#include "engine/scheduler/scheduler_invariants.h"
#include "engine/scheduler/step_plan.h"
#include "engine/scheduler/token_budget.h"

namespace quire {

// Decides who computes how many tokens in each step, and the only one that preempts. Each request has
// num_computed_tokens catching up with num_tokens; prefill, chunked prefill, preempt-and-recompute and decode
// are one code path. Not thread-safe: the engine's thread owns it.
class Scheduler {
 public:
  // `cache` and `clock` must outlive the scheduler. `config` must be valid.
  Scheduler(const SchedulerConfig& config, KvCacheManager* cache, const Clock* clock);
  // Gives the blocks of what still runs back.
  ~Scheduler();
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Puts the request at the end of the waiting queue. NeverFits (INVALID_ARGUMENT with the needed and available
  // tokens and blocks) if it could not run even alone; nothing is kept then. Order of arrival is the order of
  // these calls.
  absl::Status AddRequest(std::unique_ptr<Request> request);

  // Fills `plan` with the next step: running requests first, one token each if they decode; then what remains of
  // max_num_batched_tokens goes to prefills, first come first served. Out of blocks preempts the newest running
  // request to the front of waiting. An empty plan: nothing can be computed.
  // Requests with their max_tokens of output must have been removed before.
  void Schedule(StepPlan* plan);

  // Commits a step that succeeded: advances num_computed_tokens and appends the sampled tokens, one for each
  // plan entry with samples_token, in plan order. Entries of requests removed since are passed over.
  // A step that failed is simply not committed: scheduling again plans the same tokens.
  void Update(const StepPlan& plan, std::span<const TokenId> sampled);

  // Removes a request in whatever state, frees its blocks and returns it; nullptr if unknown.
  std::unique_ptr<Request> Remove(RequestId id);

  Request* Find(RequestId id);
  // Running requests, oldest first, then waiting ones, next first. Valid until the next change.
  std::vector<const Request*> Requests() const;
  // Appends the ids of requests whose deadline is at or before `now`.
  void CollectExpired(TimePoint now, std::vector<RequestId>* expired) const;

  bool HasWork() const { return !requests_.empty(); }
  int64_t num_running() const { return static_cast<int64_t>(running_.size()); }
  int64_t num_waiting() const { return static_cast<int64_t>(waiting_.size()); }
  int64_t num_preemptions() const { return num_preemptions_; }

  // Everything that the invariants speak of; see scheduler_invariants.h.
  SchedulerSnapshot Snapshot() const;

 private:
  absl::Status CheckFits(const Request& request) const;

  // The three parts of Schedule, in their order.
  void ScheduleDecodes(TokenBudget* budget, StepPlan* plan);
  void ScheduleRunningPrefills(TokenBudget* budget, StepPlan* plan);
  void AdmitWaiting(TokenBudget* budget, StepPlan* plan);

  // Slots for all tokens of a running request, at the cost of newer ones. False if it is the newest itself:
  // it then keeps what it has, and its place, until blocks are free or an older one takes them.
  [[nodiscard]] bool EnsureSlots(const Request& request);
  void PreemptNewest();
  // Moves the front of waiting to running with slots for all its tokens. False, and nothing changed, if they
  // do not fit now.
  [[nodiscard]] bool AdmitFront();

  void AppendToPlan(const Request& request, const TokenDemand& demand, int64_t num_tokens, StepPlan* plan) const;
  void CommitTokens(const ScheduledRequest& scheduled, Request* request) const;
  void AppendSampled(TokenId token, Request* request) const;

  const SchedulerConfig config_;
  KvCacheManager* const cache_;
  const Clock* const clock_;

  std::unordered_map<RequestId, std::unique_ptr<Request>> requests_;
  // Both in order of arrival, and all that runs arrived before all that waits: only the newest is preempted,
  // only the front is admitted.
  std::vector<Request*> running_;
  std::deque<Request*> waiting_;
  int64_t num_preemptions_ = 0;
};

}  // namespace quire
