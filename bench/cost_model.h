#pragma once

#include <cstdint>

#include "engine/scheduler/step_plan.h"

namespace quire {

// How long a step takes, as a linear function of what it computes. A request with one token in the step decodes; its
// chunk's tokens are prefill otherwise. Context tokens are those whose keys and values the step reads: for each request
// all up to the end of its chunk.
struct CostModel {
  double seconds_per_step = 0.0093;
  double seconds_per_prefill_token = 0.00036;
  double seconds_per_decode = 0.0007;
  double seconds_per_context_token = 0.000001;

  double StepSeconds(const StepPlan& plan) const {
    int64_t num_prefill_tokens = 0;
    int64_t num_decodes = 0;
    int64_t num_context_tokens = 0;
    for (const ScheduledRequest& scheduled : plan.requests) {
      const int64_t num_tokens = scheduled.num_scheduled_tokens();
      if (num_tokens == 1) {
        ++num_decodes;
      } else {
        num_prefill_tokens += num_tokens;
      }
      num_context_tokens += scheduled.first_position + num_tokens;
    }
    return StepSeconds(num_prefill_tokens, num_decodes, num_context_tokens);
  }

  double StepSeconds(int64_t num_prefill_tokens, int64_t num_decodes, int64_t num_context_tokens) const {
    return seconds_per_step + seconds_per_prefill_token * static_cast<double>(num_prefill_tokens) +
           seconds_per_decode * static_cast<double>(num_decodes) +
           seconds_per_context_token * static_cast<double>(num_context_tokens);
  }
};

}  // namespace quire
