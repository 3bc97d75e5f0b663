#pragma once

#include <cstdint>

#include "engine/scheduler/step_plan.h"

namespace quire {

// What one step computes, or several together.
struct StepWork {
  int64_t num_steps = 0;
  int64_t num_head_steps = 0;  // those that compute logits
  int64_t num_tokens = 0;
  int64_t num_logits_rows = 0;
  int64_t num_cached_tokens =
      0;                   // whose keys and values are read: for each sequence those before its last token, and it
  int64_t num_scores = 0;  // pairs of a query and a key that it attends to

  StepWork& operator+=(const StepWork& other) {
    num_steps += other.num_steps;
    num_head_steps += other.num_head_steps;
    num_tokens += other.num_tokens;
    num_logits_rows += other.num_logits_rows;
    num_cached_tokens += other.num_cached_tokens;
    num_scores += other.num_scores;
    return *this;
  }
};

inline StepWork WorkOf(const StepPlan& plan) {
  StepWork work = {.num_steps = 1,
                   .num_head_steps = plan.num_logits_rows > 0 ? 1 : 0,
                   .num_tokens = plan.num_tokens,
                   .num_logits_rows = plan.num_logits_rows};
  for (const ScheduledRequest& scheduled : plan.requests) {
    const int64_t end_position = scheduled.first_position + scheduled.num_scheduled_tokens();
    work.num_cached_tokens += end_position;
    // The query at position p attends to p + 1 keys.
    work.num_scores +=
        (end_position * (end_position + 1) - scheduled.first_position * (scheduled.first_position + 1)) / 2;
  }
  return work;
}

}  // namespace quire
