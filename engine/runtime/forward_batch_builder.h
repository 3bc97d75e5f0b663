#pragma once

#include <cstdint>

#include "engine/model/forward_batch.h"
#include "engine/scheduler/step_plan.h"

namespace quire {

// The largest step, so that memory is taken once.
struct ForwardBatchLimits {
  int64_t block_size = 0;  // tokens
  int64_t max_num_batched_tokens = 0;
  int64_t max_num_seqs = 0;
  int64_t max_blocks_per_seq = 0;
  int64_t max_num_logits_rows = 0;
};

// Turns a step's plan into the arrays that the model computes with. The only place that computes slots.
class ForwardBatchBuilder {
 public:
  explicit ForwardBatchBuilder(const ForwardBatchLimits& limits);
  // What one takes, for the memory sum.
  static int64_t BytesFor(const ForwardBatchLimits& limits);

  // Valid until the next call. A plan within the limits takes no memory.
  const ForwardBatch& Build(const StepPlan& plan);

 private:
  void AppendTokens(const ScheduledRequest& scheduled);
  void AppendBlockTable(const ScheduledRequest& scheduled);
  void AppendLogitsRows(const ScheduledRequest& scheduled);

  int64_t block_size_;
  ForwardBatch batch_;
};

}  // namespace quire
