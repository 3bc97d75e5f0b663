#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/histogram.h"
#include "engine/kv_cache/kv_cache_snapshot.h"
#include "engine/runtime/step_times.h"

namespace quire {

// A request as GetCacheStats shows it.
struct RequestStats {
  std::string label;
  std::string tenant;
  std::string state;  // "waiting", "running", "preempted"
  int64_t num_blocks = 0;
  int64_t num_tokens = 0;           // prompt and output so far
  int64_t num_computed_tokens = 0;  // stored in the cache
  int64_t num_cached_tokens = 0;    // of those, found in the prefix cache when it was admitted
  int32_t priority = 0;
};

// A tenant with requests, as GetCacheStats shows it.
struct TenantStats {
  std::string tenant;
  double weight = 1;
  int64_t num_running = 0;
  int64_t num_waiting = 0;
  int64_t num_blocks = 0;     // owned by its requests; a block shared with another tenant's counts for both
  double virtual_tokens = 0;  // what its share is measured by: tokens served, divided by its weight
};

// A consistent copy of the engine's own counters, taken between two steps.
struct EngineStats {
  KvCacheUsage cache;
  int64_t num_running = 0;
  int64_t num_waiting = 0;
  int64_t num_preemptions = 0;           // since start
  int64_t num_recomputed_tokens = 0;     // since start: computed again because a preemption had dropped them
  int64_t num_deferred_admissions = 0;   // since start: requests that had to queue because blocks were missing
  int64_t num_queued_tokens = 0;         // prompt and output so far of those that wait
  int64_t num_steps = 0;                 // since start, those that failed included
  int64_t num_failed_steps = 0;          // since start
  int64_t num_prompt_tokens = 0;         // computed, since start; again after a preemption
  int64_t num_output_tokens = 0;         // sampled, since start
  int64_t num_finished_requests = 0;     // since start, whatever their end
  int64_t num_invariant_violations = 0;  // found since start; above 0 is a defect
  int64_t max_num_step_tokens = 0;       // what a step may compute now, with max_num_batched_tokens auto
  double drained_tokens_per_second = 0;  // measured: how fast the queue empties
  // From a cancellation, disconnect, deadline or stop string to its blocks being free.
  Histogram release_steps;
  Histogram release_seconds;
  StepSummary steps;
  std::vector<TenantStats> tenants;    // filled only when asked for
  std::vector<RequestStats> requests;  // filled only when asked for
};

}  // namespace quire
