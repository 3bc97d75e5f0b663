#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/ids.h"

namespace quire {

// Every block is free, cached or used: the three sum to num_blocks.
struct KvCacheUsage {
  int64_t num_blocks = 0;
  int64_t num_used_blocks = 0;    // owned by at least one request
  int64_t num_free_blocks = 0;    // never written, or freed and not findable
  int64_t num_cached_blocks = 0;  // owned by none, still findable; 0 until there is a prefix cache
  int64_t num_stored_tokens = 0;  // whose slots are given out, a shared block's counted once
  int64_t peak_used_blocks = 0;
};

// A copy of the cache manager's bookkeeping at one moment, for validation.
struct KvCacheSnapshot {
  struct RequestTable {
    RequestId request{};
    int64_t num_tokens = 0;
    std::vector<BlockId> blocks;
  };

  int64_t block_size = 0;            // tokens
  std::vector<int32_t> ref_counts;   // [num_blocks]
  std::vector<BlockId> free_blocks;  // least recently freed first
  std::vector<RequestTable> tables;
  KvCacheUsage usage;
};

}  // namespace quire
