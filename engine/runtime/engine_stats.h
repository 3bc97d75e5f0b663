#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/kv_cache/kv_cache_manager.h"

namespace quire {

// A request as GetCacheStats shows it.
struct RequestStats {
  std::string label;
  std::string tenant;
  std::string state;  // "waiting", "running", "preempted"
  int64_t num_blocks = 0;
  int64_t num_tokens = 0;           // prompt and output so far
  int64_t num_computed_tokens = 0;  // stored in the cache
};

// A consistent copy of the engine's own counters, taken between two steps.
struct EngineStats {
  KvCacheUsage cache;
  int64_t num_running = 0;
  int64_t num_waiting = 0;
  int64_t num_preemptions = 0;           // since start
  int64_t num_steps = 0;                 // since start, those that failed included
  int64_t num_failed_steps = 0;          // since start
  int64_t num_prompt_tokens = 0;         // computed, since start; again after a preemption
  int64_t num_output_tokens = 0;         // sampled, since start
  int64_t num_finished_requests = 0;     // since start, whatever their end
  int64_t num_invariant_violations = 0;  // found since start; above 0 is a defect
  std::vector<RequestStats> requests;    // filled only when asked for
};

}  // namespace quire
