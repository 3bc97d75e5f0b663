#pragma once

#include <cstdint>

namespace quire {

struct KvCacheConfig {
  int64_t num_blocks = 0;  // >= 1
  int64_t block_size = 0;  // tokens, >= 1
  bool enable_prefix_caching = true;
};

}  // namespace quire
