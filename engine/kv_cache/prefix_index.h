#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "engine/base/ids.h"
#include "engine/kv_cache/block_hash.h"

namespace quire {

// Tells one sequence of full blocks from every other that was ever cached: given once, never again. 0 is the empty one.
using PrefixId = uint64_t;

// A prefix of whole blocks, as far as it has been followed.
struct Prefix {
  PrefixId id = 0;
  BlockHash hash = 0;
};

// Which blocks hold the keys and values of which tokens after which others. A block is found by a chained hash, and
// compared: its parent by identity, its tokens one by one, and the first block's namespace. So equal hashes never pass
// for equal prefixes. All memory is taken at the start; every operation takes constant time but for equal hashes.
class PrefixIndex {
 public:
  // Whose prefixes a request may find: only those registered under an equal string.
  using Namespace = std::shared_ptr<const std::string>;

  PrefixIndex(int64_t num_blocks, int64_t block_size, BlockHashFunction hash);
  // What one block's entry takes, for the memory sum.
  static int64_t BytesPerBlock(int64_t block_size);

  // The block that holds `token_ids` [block_size] after `parent`, whose prefix then becomes *parent; or -1.
  BlockId Find(const Namespace& cache_namespace, std::span<const TokenId> token_ids, Prefix* parent) const;

  // Makes `block`, which holds `token_ids` after `parent`, findable, unless another holds the same already.
  // *parent becomes the prefix that ends with it.
  void Insert(BlockId block, const Namespace& cache_namespace, std::span<const TokenId> token_ids, Prefix* parent);

  bool Contains(BlockId block) const { return entry(block).prefix.id != 0; }
  // No-op if it is not there.
  void Erase(BlockId block);

  // For validation.
  PrefixId id(BlockId block) const { return entry(block).prefix.id; }

 private:
  struct Entry {
    Prefix prefix;  // that ends with this block; id 0: not findable
    PrefixId parent_id = 0;
    Namespace cache_namespace;  // of a request's first block; null for others: their parent has it
    BlockId next = -1;          // in the same bucket
  };

  const Entry& entry(BlockId block) const { return entries_[static_cast<size_t>(block)]; }
  Entry& entry(BlockId block) { return entries_[static_cast<size_t>(block)]; }
  std::span<TokenId> tokens(BlockId block);
  std::span<const TokenId> tokens(BlockId block) const;
  const BlockId& bucket(BlockHash hash) const { return buckets_[hash & (buckets_.size() - 1)]; }
  BlockId& bucket(BlockHash hash) { return buckets_[hash & (buckets_.size() - 1)]; }
  BlockHash HashOf(const Namespace& cache_namespace, std::span<const TokenId> token_ids, const Prefix& parent) const;
  bool Holds(BlockId block, BlockHash hash, const Namespace& cache_namespace, std::span<const TokenId> token_ids,
             PrefixId parent_id) const;

  int64_t block_size_;
  BlockHashFunction hash_;
  PrefixId last_id_ = 0;
  std::vector<Entry> entries_;      // [num_blocks]
  std::vector<TokenId> token_ids_;  // [num_blocks, block_size]
  std::vector<BlockId> buckets_;    // a power of two, at least num_blocks; first of each list, or -1
};

}  // namespace quire
