#pragma once

#include <string>
#include <vector>

#include "engine/kv_cache/kv_cache_snapshot.h"

namespace quire {

// Every violation of what must always hold, a sentence each; empty if all is well:
// - free + cached + used = total;
// - each block's reference count = the requests that own it;
// - each table's length = ceil(num_tokens / block_size), without a block twice;
// - the free queue holds exactly the blocks without owners, each once;
// - cached = findable blocks without owners, and no two blocks are found as the same prefix;
// - a table has made no more blocks findable than are full.
std::vector<std::string> FindKvCacheViolations(const KvCacheSnapshot& snapshot);

}  // namespace quire
