#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/base/ids.h"
#include "engine/kv_cache/block_pool.h"
#include "engine/kv_cache/kv_cache_snapshot.h"

namespace quire {

// Block tables of requests over a BlockPool. Knows ids and counts only: no tensor, no policy; that something
// does not fit is a return value. Not thread-safe: the engine's thread owns it.
class KvCacheManager {
 public:
  // `num_blocks` >= 1; `block_size` in tokens, >= 1.
  KvCacheManager(int64_t num_blocks, int64_t block_size);

  int64_t block_size() const { return block_size_; }
  int64_t num_blocks() const { return pool_.num_blocks(); }
  int64_t num_free_blocks() const { return pool_.num_free_blocks(); }

  // How many blocks hold `num_tokens`. The one place that says so.
  int64_t BlocksFor(int64_t num_tokens) const;

  // Registers the request, if it is not, and gives its table room for `max_num_tokens` in all, so that growing it
  // takes no memory later. Takes no block.
  void ReserveTable(RequestId request, int64_t max_num_tokens);

  // Makes the request's table long enough for `num_tokens` in all (its first call registers the request). A table
  // that is longer already stays as it is.
  // All or nothing: false, and nothing changed, if the free blocks do not suffice.
  [[nodiscard]] bool AllocateSlots(RequestId request, int64_t num_tokens);

  // Drops blocks past the first `num_tokens`. A request that is not registered is a programmer error.
  void Truncate(RequestId request, int64_t num_tokens);

  // Registers `child` with the parent's blocks, shared by reference count. A last, partly filled block may be
  // written by one of them only: truncate the child to its full blocks, allocate again, and copy that block.
  void Fork(RequestId parent, RequestId child);

  // Gives the request's blocks back, tail first, so that its beginning is reused last. No-op if unknown.
  void Free(RequestId request);

  // [ceil(num_tokens / block_size)]; empty if unknown. Valid until the request's next change.
  std::span<const BlockId> BlockTable(RequestId request) const;
  // Slots given to the request, in tokens; 0 if unknown.
  int64_t NumTokens(RequestId request) const;

  // Takes time and memory in the number of blocks: for statistics, not for a step.
  KvCacheUsage Usage() const;

  // Everything that the invariants speak of; see kv_cache_invariants.h.
  KvCacheSnapshot Snapshot() const;

 private:
  struct Table {
    std::vector<BlockId> blocks;  // [BlocksFor(num_tokens)]
    int64_t num_tokens = 0;
  };

  const Table* FindTable(RequestId request) const;
  // Each block's tokens once, however many requests share it.
  int64_t CountStoredTokens() const;

  BlockPool pool_;
  int64_t block_size_;
  int64_t peak_used_blocks_ = 0;
  std::unordered_map<RequestId, Table> tables_;
};

}  // namespace quire
