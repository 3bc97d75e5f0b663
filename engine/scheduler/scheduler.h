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
#include "engine/scheduler/step_plan.h"

namespace quire {

// Decides who computes how many tokens in each step, and the only one that preempts. Each request has
// num_computed_tokens catching up with num_tokens; prefill, chunked prefill, preempt-and-recompute and decode
// are one code path. Not thread-safe: the engine's thread owns it.
class Scheduler {
 public:
  // `cache` must outlive the scheduler. `config` must be valid.
  Scheduler(const SchedulerConfig& config, KvCacheManager* cache, const Clock* clock);

  // Puts the request at the end of the waiting queue. NeverFits (INVALID_ARGUMENT with the needed and available
  // tokens and blocks) if it could not run even alone; nothing is kept then.
  absl::Status AddRequest(std::unique_ptr<Request> request);

  // Fills `plan` with the next step: running requests first, one token each if they decode; then what remains of
  // max_num_batched_tokens goes to prefills, first come first served. Out of blocks preempts the newest running
  // request to the front of waiting. An empty plan: nothing can be computed.
  void Schedule(StepPlan* plan);

  // Commits a step that succeeded: advances num_computed_tokens and appends the sampled tokens, one for each
  // plan entry with samples_token, in plan order.
  void Update(const StepPlan& plan, std::span<const TokenId> sampled);

  // Removes a request in whatever state, frees its blocks and returns it; nullptr if unknown.
  std::unique_ptr<Request> Remove(RequestId id);

  Request* Find(RequestId id);
  // Appends the ids of requests whose deadline is at or before `now`.
  void CollectExpired(TimePoint now, std::vector<RequestId>* expired) const;

  bool HasWork() const;
  int64_t num_running() const;
  int64_t num_waiting() const;
  int64_t num_preemptions() const;
