#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/kv_cache/kv_cache_manager.h"
#include "engine/scheduler/admission_headroom.h"
#include "engine/scheduler/precedence.h"
#include "engine/scheduler/request.h"
#include "engine/scheduler/request_fit.h"
#include "engine/scheduler/scheduler_config.h"
#include "engine/scheduler/scheduler_invariants.h"
#include "engine/scheduler/step_length.h"
#include "engine/scheduler/step_plan.h"
#include "engine/scheduler/tenant_ledger.h"
#include "engine/scheduler/token_budget.h"
#include "engine/scheduler/waiting_queue.h"

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

  // Puts the request into the waiting queue. NeverFits (INVALID_ARGUMENT with the needed and available tokens and
  // blocks) if it could not run even alone; nothing is kept then. Ids ascend in order of arrival.
  absl::Status AddRequest(std::unique_ptr<Request> request);

  // What tenants may use from now on. Requests that wait stay accepted and those that run go on; one that needs more
  // blocks than its tenant may own now runs when nothing else of the tenant does.
  void SetTenantLimits(TenantLimitsByName tenants);

  // Fills `plan` with the next step: running requests first, one token each if they decode; then what remains of the
  // step's tokens goes to prefills, running or waiting, by precedence. Out of blocks preempts the last running request
  // by rank. An empty plan: nothing can be computed.
  // Requests with their max_tokens of output must have been removed before.
  void Schedule(StepPlan* plan);

  // Tells what computing `plan` took, which decides how long later steps may be.
  void ObserveStep(const StepPlan& plan, double seconds) { step_length_.Observe(plan.num_prefill_tokens, seconds); }

  // Commits a step that succeeded: advances num_computed_tokens and appends the sampled tokens, one for each
  // plan entry with samples_token, in plan order. Entries of requests removed since are passed over.
  // A step that failed is simply not committed: scheduling again plans the same tokens.
  void Update(const StepPlan& plan, std::span<const TokenId> sampled);

  // Removes a request in whatever state, frees its blocks and returns it; nullptr if unknown.
  std::unique_ptr<Request> Remove(RequestId id);

  // Null if it is unknown.
  const Request* Find(RequestId id) const;
  // Running requests by rank, then waiting ones, in order of arrival within a tenant and priority. Valid until
  // the next change.
  std::vector<const Request*> Requests() const;
  // Appends the ids of requests whose deadline is at or before `now`.
  void CollectExpired(TimePoint now, std::vector<RequestId>* expired) const;

  const SchedulerConfig& config() const { return config_; }
  // What a request must keep to that may own the whole pool.
  FitLimits fit_limits() const;

  bool HasWork() const { return !requests_.empty(); }
  int64_t num_running() const { return static_cast<int64_t>(running_.size()); }
  int64_t num_waiting() const { return waiting_.size(); }
  int64_t num_waiting_tokens() const { return waiting_.num_tokens(); }
  const TenantLedger& tenants() const { return tenants_; }
  const StepLength& step_length() const { return step_length_; }
  int64_t num_headroom_blocks() const { return headroom_.num_blocks(); }
  // Since start.
  int64_t num_preemptions() const { return num_preemptions_; }
  int64_t num_recomputed_tokens() const { return num_recomputed_tokens_; }
  int64_t num_deferred_admissions() const { return num_deferred_admissions_; }

  // Everything that the invariants speak of; see scheduler_invariants.h.
  SchedulerSnapshot Snapshot() const;

 private:
  // The three parts of Schedule, in their order.
  // The next waiting request if its tenant may take a place from another, and if need be has taken it, so that there
  // is room; or nullptr.
  Request* MakeRoomForUnderserved();
  // Leaves out tenants that `guest`, if there is one, may take a place from: it gets its first token by a step of its
  // own, as soon as they get their next ones by the step after it. Alone each takes as long as both together.
  void ScheduleDecodes(const Request* guest, TokenBudget* budget, StepPlan* plan);
  // Admits `waiting`, and if `more_may_follow` others after it.
  void SchedulePrefills(Request* waiting, bool more_may_follow, TokenBudget* budget, StepPlan* plan);

  // Counts prompt tokens as served when they are planned, so that the same step's next choice knows.
  void ChargePrompt(const Request& request, int64_t num_tokens);

  // Slots for all tokens of a running request, at the cost of those after it. False if it is the last itself: it then
  // keeps what it has, and its place, until blocks are free or one before it takes them.
  [[nodiscard]] bool EnsureSlots(const Request& request);
  void Preempt(Request* request);
  // The last running request by rank whose place `waiting` may take; nullptr if there is none.
  Request* DisplacedBy(const Request& waiting) const;
  // The waiting request that is next, among those whose tenants may run another.
  Request* NextWaiting();
  // Moves a waiting request to running with slots for all its tokens, of which those found in the cache are computed.
  // False, and nothing changed, if they do not fit now.
  [[nodiscard]] bool Admit(Request* request);
  void StopRunning(Request* request);
  // That the request may come to own.
  int64_t BlocksAtEnd(const Request& request) const;
  Precedence PrecedenceOf(const Request& request) const;
  RunningRank RankOf(const Request& waiting) const;

  void AppendToPlan(const Request& request, const TokenDemand& demand, int64_t num_tokens, StepPlan* plan) const;
  void CommitTokens(const ScheduledRequest& scheduled, Request* request);
  void AppendSampled(TokenId token, Request* request);

  SchedulerConfig config_;  // fixed, but for `tenants`
  KvCacheManager* const cache_;
  const Clock* const clock_;

  std::unordered_map<RequestId, std::unique_ptr<Request>> requests_;
  std::set<std::pair<TimePoint, RequestId>> deadlines_;
  // By rank, which is fixed while a request runs: so the first is never preempted, always advances, and every request
  // ends.
  std::vector<Request*> running_;
  WaitingQueue waiting_;
  TenantLedger tenants_;
  AdmissionHeadroom headroom_;
  StepLength step_length_;
  std::vector<std::pair<Precedence, Request*>> prefills_;  // of the current step, by precedence; reused
  bool yielded_ = false;  // the last step left decodes out for a guest; never two in a row
  int64_t num_preemptions_ = 0;
  int64_t num_recomputed_tokens_ = 0;
  int64_t num_deferred_admissions_ = 0;
};

}  // namespace quire
