#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

// What is known before anything is loaded: it follows from file and flags alone.
struct MemoryInputs {
  int64_t weights_bytes = 0;
  int64_t workspace_bytes = 0;  // worst step
  int64_t text_layer_bytes = 0;
  int64_t request_state_bytes = 0;  // max_num_seqs requests
  int64_t process_bytes = 0;        // resident before loading: code, libraries, allocator
  int64_t bytes_per_block = 0;
  int64_t block_size = 0;  // tokens
  int64_t max_num_seqs = 0;
  int64_t context_length = 0;                    // the model's
  std::optional<int64_t> max_model_len;          // unset: the largest that fits
  std::optional<int64_t> memory_budget_bytes;    // unset: auto
  std::optional<int64_t> kv_cache_memory_bytes;  // unset: what the budget leaves
  std::optional<int64_t> cgroup_limit_bytes;     // unset: no limit
  int64_t available_bytes = 0;                   // of the machine
};

// The sum of design and its result: budget = weights + workspace + text layer + request state + reserve + KV pool.
struct MemoryPlan {
  int64_t budget_bytes = 0;
  int64_t weights_bytes = 0;
  int64_t workspace_bytes = 0;
  int64_t text_layer_bytes = 0;
  int64_t request_state_bytes = 0;
  int64_t process_bytes = 0;
  int64_t reserve_bytes = 0;
  int64_t pool_bytes = 0;  // num_blocks * bytes_per_block
  int64_t bytes_per_block = 0;
  int64_t block_size = 0;  // tokens
  int64_t num_blocks = 0;
  int64_t max_model_len = 0;  // tokens

  // What the budget holds beyond the sum: less than a block, or more with a pool set by hand.
  int64_t unused_bytes() const;

  // A table with a line per item, for the start message and for errors.
  std::string ToTable() const;
};

// Pure. INVALID_ARGUMENT holds the sum as a table and the value that would work: an explicit budget above the cgroup
// limit or available memory, or one too small for an explicit max_model_len or for 256 tokens.
absl::StatusOr<MemoryPlan> PlanMemory(const MemoryInputs& inputs);

}  // namespace quire
