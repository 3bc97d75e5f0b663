#include "engine/kv_cache/kv_cache_manager.h"

#include <algorithm>
#include <numeric>

#include "engine/base/check.h"
#include "engine/base/math.h"

namespace quire {

KvCacheManager::KvCacheManager(int64_t num_blocks, int64_t block_size) : pool_(num_blocks), block_size_(block_size) {
  QUIRE_CHECK_LE(1, block_size);
}

int64_t KvCacheManager::BlocksFor(int64_t num_tokens) const { return CeilDiv(num_tokens, block_size_); }

void KvCacheManager::ReserveTable(RequestId request, int64_t max_num_tokens) {
  tables_[request].blocks.reserve(static_cast<size_t>(BlocksFor(max_num_tokens)));
}

bool KvCacheManager::AllocateSlots(RequestId request, int64_t num_tokens) {
  const Table* known = FindTable(request);
  const int64_t num_owned = known != nullptr ? static_cast<int64_t>(known->blocks.size()) : 0;
  const int64_t num_missing = std::max<int64_t>(0, BlocksFor(num_tokens) - num_owned);
  if (num_missing > pool_.num_free_blocks()) return false;

  Table& table = tables_[request];
  QUIRE_CHECK(pool_.Allocate(num_missing, &table.blocks));
  table.num_tokens = std::max(table.num_tokens, num_tokens);
  peak_used_blocks_ = std::max(peak_used_blocks_, pool_.num_used_blocks());
  return true;
}

void KvCacheManager::Truncate(RequestId request, int64_t num_tokens) {
  const auto found = tables_.find(request);
  QUIRE_CHECK(found != tables_.end());
  Table& table = found->second;
  if (num_tokens >= table.num_tokens) return;
  const size_t num_kept = static_cast<size_t>(BlocksFor(num_tokens));
  while (table.blocks.size() > num_kept) {
    pool_.DropReference(table.blocks.back());
    table.blocks.pop_back();
  }
  table.num_tokens = num_tokens;
}

void KvCacheManager::Fork(RequestId parent, RequestId child) {
  const Table* source = FindTable(parent);
  QUIRE_CHECK(source != nullptr);
  QUIRE_CHECK(FindTable(child) == nullptr);
  for (const BlockId block : source->blocks) pool_.AddReference(block);
  tables_.emplace(child, *source);
}

void KvCacheManager::Free(RequestId request) {
  const auto found = tables_.find(request);
  if (found == tables_.end()) return;
  const std::vector<BlockId>& blocks = found->second.blocks;
  std::for_each(blocks.rbegin(), blocks.rend(), [this](BlockId block) { pool_.DropReference(block); });
  tables_.erase(found);
}

std::span<const BlockId> KvCacheManager::BlockTable(RequestId request) const {
  const Table* table = FindTable(request);
  if (table == nullptr) return {};
  return table->blocks;
}

int64_t KvCacheManager::NumTokens(RequestId request) const {
  const Table* table = FindTable(request);
  return table != nullptr ? table->num_tokens : 0;
}

KvCacheUsage KvCacheManager::Usage() const {
  return {.num_blocks = pool_.num_blocks(),
          .num_used_blocks = pool_.num_used_blocks(),
          .num_free_blocks = pool_.num_free_blocks(),
          .num_cached_blocks = 0,
          .num_stored_tokens = CountStoredTokens(),
          .peak_used_blocks = peak_used_blocks_};
}

KvCacheSnapshot KvCacheManager::Snapshot() const {
  KvCacheSnapshot snapshot;
  snapshot.block_size = block_size_;
  snapshot.ref_counts.reserve(static_cast<size_t>(num_blocks()));
  for (BlockId id = 0; id < num_blocks(); ++id) snapshot.ref_counts.push_back(pool_.ref_count(id));
  snapshot.free_blocks = pool_.FreeBlockIds();
  for (const auto& [request, table] : tables_) {
    snapshot.tables.push_back({.request = request, .num_tokens = table.num_tokens, .blocks = table.blocks});
  }
  snapshot.usage = Usage();
  return snapshot;
}

const KvCacheManager::Table* KvCacheManager::FindTable(RequestId request) const {
  const auto found = tables_.find(request);
  return found != tables_.end() ? &found->second : nullptr;
}

int64_t KvCacheManager::CountStoredTokens() const {
  std::vector<int64_t> filled_tokens(static_cast<size_t>(num_blocks()), 0);  // [num_blocks]
  for (const auto& [request, table] : tables_) {
    int64_t num_left = table.num_tokens;
    for (const BlockId block : table.blocks) {
      int64_t& filled = filled_tokens[static_cast<size_t>(block)];
      filled = std::max(filled, std::min(num_left, block_size_));
      num_left -= block_size_;
    }
  }
  return std::accumulate(filled_tokens.begin(), filled_tokens.end(), int64_t{0});
}

}  // namespace quire
