#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/histogram.h"
#include "engine/base/ids.h"

namespace quire {

// Every block is free, cached or used: the three sum to num_blocks.
struct KvCacheUsage {
  int64_t num_blocks = 0;
  int64_t num_used_blocks = 0;    // owned by at least one request
  int64_t num_free_blocks = 0;    // hold nothing that can be found
  int64_t num_cached_blocks = 0;  // owned by none, still findable as a prefix, and evicted when needed
  int64_t num_shared_blocks = 0;  // of the used ones: owned by more than one request
  int64_t num_stored_tokens = 0;  // whose slots are given out, a shared block's counted once
  int64_t peak_used_blocks = 0;
  // Since start.
  int64_t num_prefix_query_tokens = 0;  // of prompts that were looked up
  int64_t num_prefix_hit_tokens = 0;    // of those, found
  int64_t num_evictions = 0;            // cached blocks given to another content
  Histogram cached_block_ages = {};     // seconds since each cached block was last owned

  // Slots of used blocks that hold no token: the unfilled ends of tables.
  int64_t num_wasted_slots(int64_t block_size) const { return num_used_blocks * block_size - num_stored_tokens; }
};

// A copy of the cache manager's bookkeeping at one moment, for validation.
struct KvCacheSnapshot {
  struct RequestTable {
    RequestId request{};
    int64_t num_tokens = 0;
    int64_t num_indexed_blocks = 0;  // the first ones, that were made findable
    std::vector<BlockId> blocks;
  };

  int64_t block_size = 0;            // tokens
  std::vector<int32_t> ref_counts;   // [num_blocks]
  std::vector<uint64_t> prefix_ids;  // [num_blocks], of what each block can be found as; 0: not findable
  std::vector<BlockId> free_blocks;  // next to be given out first
  std::vector<RequestTable> tables;
  KvCacheUsage usage;
};

}  // namespace quire
