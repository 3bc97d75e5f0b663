#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/generation_types.h"
#include "engine/base/ids.h"
#include "engine/base/token_sink.h"
#include "engine/scheduler/precedence.h"
#include "engine/scheduler/request_status.h"

namespace quire {

// A request as the engine keeps it. num_computed_tokens catches up with num_tokens(): that is prefill, recompute
// and decode alike.
struct Request {
  // Set by the caller of Scheduler::AddRequest.
  RequestId id{};
  std::string label;
  std::string tenant;
  int32_t priority = 0;  // lower runs first
  // Prefixes are found only by requests with the same one: tenant and salt. Never null once AddRequest has it.
  std::shared_ptr<const std::string> cache_namespace;
  bool reads_prefix_cache = true;
  std::vector<TokenId> token_ids;  // prompt, then output; room for all is taken when it is admitted
  int64_t num_prompt_tokens = 0;   // of token_ids, the first
  int64_t max_tokens = 0;          // of output; sampling.max_tokens, or what was chosen where that is unset
  SamplingParams sampling;
  std::optional<TimePoint> deadline;
  TimePoint arrival_time;
  std::shared_ptr<TokenSink> sink;

  // Kept by the scheduler.
  RequestStatus status = RequestStatus::kWaiting;
  RunningRank rank;                      // while it runs
  int64_t num_computed_tokens = 0;       // whose keys and values are in the cache
  int64_t num_prompt_logprobs_sent = 0;  // for prompt tokens [1, 1 + num_prompt_logprobs_sent)
  int64_t num_cached_tokens = 0;         // of num_computed_tokens, found in the cache at its last admission
  int64_t num_first_cached_tokens = 0;   // the same, at its first admission
  int64_t num_preemptions = 0;
  int64_t peak_computed_tokens = 0;  // before preemptions; what is computed below it is computed again
  bool was_deferred = false;         // once waited although a sequence was free: blocks were missing
  std::optional<TimePoint> first_scheduled_time;
  std::optional<TimePoint> first_token_time;

  int64_t num_tokens() const { return static_cast<int64_t>(token_ids.size()); }
  int64_t num_output_tokens() const { return num_tokens() - num_prompt_tokens; }
  int64_t num_pending_tokens() const { return num_tokens() - num_computed_tokens; }
  // The last sampled token ends the request and is never computed.
  int64_t max_stored_tokens() const { return num_prompt_tokens + max_tokens - 1; }

  bool wants_prompt_logprobs() const { return sampling.num_prompt_logprobs.has_value(); }
  // The first prompt token has no log-probability: nothing precedes it.
  bool awaits_prompt_logprobs() const {
    return wants_prompt_logprobs() && num_prompt_logprobs_sent < num_prompt_tokens - 1;
  }
};

}  // namespace quire
