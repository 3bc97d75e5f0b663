#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/ids.h"

namespace quire {

// What one step computes for one request. Spans point into the request and the cache manager and are valid
// until Scheduler::Update is called for the step.
struct ScheduledRequest {
  RequestId request_id;
  std::span<const TokenId> token_ids;        // [num_scheduled_tokens], the tokens to compute
  int64_t first_position = 0;                // position of token_ids[0]; the others follow
  int64_t first_logits_row = 0;              // rows [first_logits_row, end_logits_row) of token_ids
  int64_t end_logits_row = 0;                //   whose logits are wanted; none if equal
  bool samples_token = false;                // the last row's logits choose the next token; all other rows
                                             //   are for the log-probability of the prompt token after theirs
  std::span<const TokenId> draft_token_ids;  // speculation's proposals; empty now
  int32_t adapter_id = -1;                   // -1: the base model
  // One block table per KV group (one group now; sliding windows need a second). // [ceil(num_tokens / block_size)]
  std::span<const BlockId> block_table;

  int64_t num_scheduled_tokens() const { return static_cast<int64_t>(token_ids.size()); }
  int64_t num_logits_rows() const { return end_logits_row - first_logits_row; }
};

struct BlockCopy {
  BlockId from;
  BlockId to;
};

// A step as a value: decided by the scheduler, and re-derived by nobody. Reused from step to step so that a
// steady step does not allocate.
struct StepPlan {
  std::vector<ScheduledRequest> requests;  // decodes first, then prefills
  std::vector<BlockCopy> block_copies;     // done before anything is computed
  int64_t num_tokens = 0;                  // sum of num_scheduled_tokens
  int64_t num_logits_rows = 0;             // sum of num_logits_rows
  int64_t num_prefill_tokens = 0;          // of num_tokens, those of prefills

  bool empty() const { return requests.empty(); }
  void Clear() {
    requests.clear();
    block_copies.clear();
    num_tokens = 0;
    num_logits_rows = 0;
    num_prefill_tokens = 0;
  }
};

}  // namespace quire
