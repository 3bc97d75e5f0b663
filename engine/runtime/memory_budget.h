#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace quire {

// The parts of the sum that follow from file and flags alone, each at its worst.
struct MemoryItems {
  int64_t weights_bytes = 0;
  int64_t workspace_bytes = 0;      // of the largest step
  int64_t text_layer_bytes = 0;     // the vocabulary, and prompts while they are encoded
  int64_t request_state_bytes = 0;  // max_num_seqs requests
  int64_t queue_bytes = 0;          // requests that wait, and their prompts
  int64_t rpc_bytes = 0;            // buffers of connections
  int64_t process_bytes = 0;        // code, libraries, stacks

  int64_t total_bytes() const;
};

// What this process may come to hold here, all in all. Unset: no limit.
struct MemoryLimits {
  std::optional<int64_t> cgroup_bytes;
  std::optional<int64_t> available_bytes;      // of the machine, with what this process holds already
  std::optional<int64_t> address_space_bytes;  // what RLIMIT_AS leaves for memory that is used
};

struct MemoryInputs {
  MemoryItems items;
  int64_t bytes_per_block = 0;        // of the pool
  int64_t index_bytes_per_block = 0;  // of the bookkeeping and the prefix index
  int64_t block_size = 0;             // tokens
  int64_t max_num_seqs = 0;
  int64_t context_length = 0;                    // the model's
  std::optional<int64_t> max_model_len;          // unset: the largest that fits
  std::optional<int64_t> memory_budget_bytes;    // unset: auto
  std::optional<int64_t> kv_cache_memory_bytes;  // unset: what the budget leaves
  MemoryLimits limits;
};

// A line of the sum. `key` is its name for programs, `name` for people.
struct MemoryLine {
  std::string_view key;
  std::string_view name;
  int64_t bytes;
  std::string remark;
};

// The sum and its result: budget = items + block index + reserve + KV pool, and less than a block of unused bytes.
struct MemoryPlan {
  MemoryItems items;
  int64_t budget_bytes = 0;
  int64_t block_index_bytes = 0;  // num_blocks * index_bytes_per_block
  int64_t reserve_bytes = 0;
  int64_t pool_bytes = 0;  // num_blocks * bytes_per_block
  int64_t bytes_per_block = 0;
  int64_t block_size = 0;  // tokens
  int64_t num_blocks = 0;
  int64_t max_num_seqs = 0;
  int64_t max_model_len = 0;  // tokens

  // What the budget holds beyond the sum: less than a block, or more with a pool set by hand.
  int64_t unused_bytes() const;
  // All that is neither weights nor workspace nor pool.
  int64_t other_bytes() const { return budget_bytes - items.weights_bytes - items.workspace_bytes - pool_bytes; }
  // How many requests of max_model_len tokens run at once without one being preempted.
  int64_t num_full_length_requests() const;

  // Lines whose bytes add up to budget_bytes.
  std::vector<MemoryLine> Lines() const;
  // The lines and their sum, for the start message and for errors.
  std::string ToTable() const;
};

// Pure. INVALID_ARGUMENT holds the sum as a table and the value that would work: an explicit budget above a limit, or
// one too small for an explicit max_model_len or for 256 tokens.
absl::StatusOr<MemoryPlan> PlanMemory(const MemoryInputs& inputs);

// INVALID_ARGUMENT names the limit that `budget_bytes` is above, with both figures.
absl::Status CheckBudgetWithinLimits(int64_t budget_bytes, const MemoryLimits& limits);

}  // namespace quire
