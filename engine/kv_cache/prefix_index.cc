#include "engine/kv_cache/prefix_index.h"

#include <algorithm>
#include <bit>
#include <string_view>
#include <utility>

#include "engine/base/check.h"

namespace quire {

PrefixIndex::PrefixIndex(int64_t num_blocks, int64_t block_size, BlockHashFunction hash)
    : block_size_(block_size),
      hash_(hash),
      entries_(static_cast<size_t>(num_blocks)),
      token_ids_(static_cast<size_t>(num_blocks * block_size)),
      buckets_(std::bit_ceil(static_cast<size_t>(num_blocks)), -1) {}

int64_t PrefixIndex::BytesPerBlock(int64_t block_size) {
  // At most two buckets: their number is rounded up to a power of two.
  return static_cast<int64_t>(sizeof(Entry) + 2 * sizeof(BlockId)) + block_size * static_cast<int64_t>(sizeof(TokenId));
}

BlockId PrefixIndex::Find(const Namespace& cache_namespace, std::span<const TokenId> token_ids, Prefix* parent) const {
  const BlockHash hash = HashOf(cache_namespace, token_ids, *parent);
  for (BlockId block = bucket(hash); block >= 0; block = entry(block).next) {
    if (!Holds(block, hash, cache_namespace, token_ids, parent->id)) continue;
    *parent = entry(block).prefix;
    return block;
  }
  return -1;
}

void PrefixIndex::Insert(BlockId block, const Namespace& cache_namespace, std::span<const TokenId> token_ids,
                         Prefix* parent) {
  QUIRE_CHECK_EQ(static_cast<int64_t>(token_ids.size()), block_size_);
  if (Find(cache_namespace, token_ids, parent) >= 0) return;
  Erase(block);  // findable after a prefix that is gone
  Entry& added = entry(block);
  added.parent_id = parent->id;
  added.prefix = {.id = ++last_id_, .hash = HashOf(cache_namespace, token_ids, *parent)};
  added.cache_namespace = parent->id == 0 ? cache_namespace : nullptr;
  std::ranges::copy(token_ids, tokens(block).begin());
  added.next = std::exchange(bucket(added.prefix.hash), block);
  *parent = added.prefix;
}

void PrefixIndex::Erase(BlockId block) {
  if (!Contains(block)) return;
  Entry& erased = entry(block);
  BlockId* link = &bucket(erased.prefix.hash);
  while (*link != block) link = &entry(*link).next;
  *link = erased.next;
  erased = {};
}

std::span<TokenId> PrefixIndex::tokens(BlockId block) {
  return std::span(token_ids_).subspan(static_cast<size_t>(block * block_size_), static_cast<size_t>(block_size_));
}

std::span<const TokenId> PrefixIndex::tokens(BlockId block) const {
  return std::span(token_ids_).subspan(static_cast<size_t>(block * block_size_), static_cast<size_t>(block_size_));
}

BlockHash PrefixIndex::HashOf(const Namespace& cache_namespace, std::span<const TokenId> token_ids,
                              const Prefix& parent) const {
  return hash_(parent.hash, token_ids, parent.id == 0 ? std::string_view(*cache_namespace) : std::string_view());
}

bool PrefixIndex::Holds(BlockId block, BlockHash hash, const Namespace& cache_namespace,
                        std::span<const TokenId> token_ids, PrefixId parent_id) const {
  const Entry& found = entry(block);
  if (found.prefix.hash != hash || found.parent_id != parent_id) return false;
  if (parent_id == 0 && *found.cache_namespace != *cache_namespace) return false;
  return std::ranges::equal(tokens(block), token_ids);
}

}  // namespace quire
