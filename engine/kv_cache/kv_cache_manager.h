#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/ids.h"
#include "engine/kv_cache/block_hash.h"
#include "engine/kv_cache/block_pool.h"
#include "engine/kv_cache/kv_cache_config.h"
#include "engine/kv_cache/kv_cache_snapshot.h"
#include "engine/kv_cache/prefix_index.h"

namespace quire {

// How many blocks of `block_size` tokens hold `num_tokens`. The one place that says so.
int64_t BlocksFor(int64_t num_tokens, int64_t block_size);

// What a request brings when it is admitted.
struct CacheAdmission {
  RequestId request{};
  std::span<const TokenId> token_ids;      // all that are to be stored now
  int64_t max_num_tokens = 0;              // that it will ever store: growing the table so far takes no memory
  PrefixIndex::Namespace cache_namespace;  // not null
  int64_t max_cached_tokens = 0;           // of token_ids, that may be taken from the cache; 0: none
  int64_t num_headroom_blocks = 0;         // that must remain available for others afterwards
};

// Block tables of requests over a BlockPool, and which full blocks are kept for whoever comes with the same prefix.
// Knows ids and counts only: no tensor, no policy; that something does not fit is a return value. Not thread-safe: the
// engine's thread owns it.
class KvCacheManager {
 public:
  // `clock` tells how long cached blocks have not been owned, and outlives the manager. `hash` is for tests.
  KvCacheManager(const KvCacheConfig& config, const Clock* clock, BlockHashFunction hash = HashBlock);
  // What the bookkeeping of one block takes, for the memory sum.
  static int64_t BytesPerBlock(int64_t block_size, bool enable_prefix_caching);

  int64_t block_size() const { return block_size_; }
  int64_t num_blocks() const { return pool_.num_blocks(); }
  bool prefix_caching() const { return index_.has_value(); }
  // Owned by no request: free, or cached and evicted when needed.
  int64_t num_available_blocks() const { return pool_.num_free_blocks(); }

  int64_t BlocksFor(int64_t num_tokens) const { return quire::BlocksFor(num_tokens, block_size_); }

  // Gives a request that has no table one with slots for all of `token_ids`. Its first full blocks are those of the
  // longest cached prefix, shared, if there is one. Returns how many tokens those hold: a multiple of the block size,
  // at most max_cached_tokens and below the number of tokens, so that one is left to be computed.
  // All or nothing: nullopt, and nothing changed, if the available blocks do not suffice.
  [[nodiscard]] std::optional<int64_t> Admit(const CacheAdmission& admission);

  // Makes the request's table long enough for `num_tokens` in all (its first call registers the request, with nothing
  // to be found by others). A table that is longer already stays as it is.
  // All or nothing: false, and nothing changed, if the available blocks do not suffice.
  [[nodiscard]] bool AllocateSlots(RequestId request, int64_t num_tokens);

  // Makes the request's full blocks findable as far as its first `num_computed_tokens` have been computed.
  // `token_ids` are all of the request's. Takes no memory.
  void CacheComputed(RequestId request, std::span<const TokenId> token_ids, int64_t num_computed_tokens);

  // Drops blocks past the first `num_tokens`. A request that is not registered is a programmer error.
  void Truncate(RequestId request, int64_t num_tokens);

  // Registers `child` with the parent's blocks, shared by reference count. A last, partly filled block may be
  // written by one of them only: truncate the child to its full blocks, allocate again, and copy that block.
  void Fork(RequestId parent, RequestId child);

  // Gives the request's blocks back, tail first, so that its beginning is reused last. No-op if unknown.
  void Free(RequestId request);

  // Forgets all prefixes; returns how many blocks were cached and are free now. Running requests keep theirs, and
  // make them findable again as they go on.
  int64_t ClearPrefixCache();

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
    PrefixIndex::Namespace cache_namespace;  // null: its blocks are not made findable
    Prefix prefix;                           // that its first num_indexed_blocks hold
    int64_t num_indexed_blocks = 0;
  };

  const Table* FindTable(RequestId request) const;
  bool IsFindable(BlockId block) const { return index_ && index_->Contains(block); }
  // Appends the cached blocks of the longest prefix to the table, without owning them yet.
  void FollowPrefix(const CacheAdmission& admission, Table* table) const;
  // Appends `num_blocks` blocks, which the pool must have, to the table; what they held is forgotten.
  void AppendBlocks(int64_t num_blocks, Table* table);
  void ShareBlock(BlockId block);
  void DropBlock(BlockId block);
  // Each block's tokens once, however many requests share it.
  int64_t CountStoredTokens() const;
  Histogram CachedBlockAges() const;

  BlockPool pool_;
  int64_t block_size_;
  const Clock* clock_;
  std::optional<PrefixIndex> index_;         // none: prefix caching is off
  std::vector<TimePoint> last_owned_times_;  // [num_blocks]
  std::unordered_map<RequestId, Table> tables_;
  int64_t num_cached_blocks_ = 0;  // findable, without owners
  int64_t peak_used_blocks_ = 0;
  int64_t num_prefix_query_tokens_ = 0;
  int64_t num_prefix_hit_tokens_ = 0;
  int64_t num_evictions_ = 0;
};

}  // namespace quire
