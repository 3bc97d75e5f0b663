#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/ids.h"
#include "engine/kv_cache/kv_cache_snapshot.h"
#include "engine/scheduler/precedence.h"
#include "engine/scheduler/request_status.h"
#include "engine/scheduler/scheduler_config.h"

namespace quire {

// A copy of the scheduler's bookkeeping between two of its calls, for validation.
struct SchedulerSnapshot {
  struct QueuedRequest {
    RequestId id{};
    std::string tenant;
    RequestStatus status = RequestStatus::kWaiting;
    RunningRank rank;
    int64_t num_tokens = 0;
    int64_t num_prompt_tokens = 0;
    int64_t num_computed_tokens = 0;
    int64_t num_prompt_logprobs_sent = 0;
    int64_t max_tokens = 0;
  };

  struct TenantAccount {
    std::string tenant;
    int64_t num_requests = 0;
    int64_t num_running = 0;
    int64_t num_reserved_blocks = 0;
  };

  SchedulerConfig config;
  std::vector<RequestId> owned;        // every request, in no order
  std::vector<QueuedRequest> running;  // by rank
  std::vector<QueuedRequest> waiting;
  std::vector<TenantAccount> tenants;
  int64_t num_waiting_tokens = 0;
  KvCacheSnapshot cache;
};

// Every violation of what must always hold, a sentence each; empty if all is well:
// - each owned request is in exactly one queue, once, with a status of that queue;
// - at most max_num_seqs run;
// - num_computed_tokens < num_tokens <= prompt + max_tokens;
// - running requests own blocks for their computed tokens, waiting ones own none and have computed none;
// - running requests stand by rank, so that the first is never preempted;
// - the tenants' accounts are the sums over their requests; so are the waiting tokens;
// - the cache holds tables of running requests only, and its own invariants hold.
// A request whose output is complete may stand with its last token until it is removed.
std::vector<std::string> FindSchedulerViolations(const SchedulerSnapshot& snapshot);

}  // namespace quire
