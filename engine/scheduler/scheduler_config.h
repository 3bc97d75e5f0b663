#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "engine/scheduler/tenant_limits.h"

namespace quire {

struct SchedulerConfig {
  int64_t max_num_batched_tokens = 512;  // computed in a step, over all requests; >= 1
  int64_t max_num_seqs = 64;             // running at once; >= 1
  int64_t max_model_len = 0;             // prompt and output of a request, in tokens; >= 2
  int64_t bytes_per_block = 0;           // for messages; 0: not told
  // While requests decode, a step gets only as many tokens as measured steps show to take at most this long; unset: a
  // step always gets max_num_batched_tokens.
  std::optional<double> target_step_seconds = {};
  double priority_aging_seconds = 30;  // waiting this long counts as one level of priority; > 0
  TenantLimitsByName tenants = {};
  // Rows of logits of a step; >= max_num_seqs, so that all may decode at once. A prefill chunk that wants prompt
  // log-probabilities is shortened to fit.
  int64_t max_num_logits_rows = 64;

  // INVALID_ARGUMENT names the field, the value and the accepted range.
  absl::Status Validate() const;
};

}  // namespace quire
