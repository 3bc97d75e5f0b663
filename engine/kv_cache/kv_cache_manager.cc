#include "engine/kv_cache/kv_cache_manager.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/math.h"

namespace quire {

int64_t BlocksFor(int64_t num_tokens, int64_t block_size) { return CeilDiv(num_tokens, block_size); }

KvCacheManager::KvCacheManager(const KvCacheConfig& config, const Clock* clock, BlockHashFunction hash)
    : pool_(config.num_blocks),
      block_size_(config.block_size),
      clock_(clock),
      last_owned_times_(static_cast<size_t>(config.num_blocks)) {
  QUIRE_CHECK_LE(1, block_size_);
  if (config.enable_prefix_caching) index_.emplace(config.num_blocks, block_size_, hash);
}

int64_t KvCacheManager::BytesPerBlock(int64_t block_size, bool enable_prefix_caching) {
  return static_cast<int64_t>(sizeof(KvBlock) + sizeof(TimePoint)) +
         (enable_prefix_caching ? PrefixIndex::BytesPerBlock(block_size) : 0);
}

std::optional<int64_t> KvCacheManager::Admit(const CacheAdmission& admission) {
  QUIRE_CHECK(FindTable(admission.request) == nullptr);
  Table table;
  table.cache_namespace = admission.cache_namespace;
  table.num_tokens = static_cast<int64_t>(admission.token_ids.size());
  table.blocks.reserve(static_cast<size_t>(BlocksFor(admission.max_num_tokens)));
  FollowPrefix(admission, &table);

  const int64_t num_shared = static_cast<int64_t>(table.blocks.size());
  const int64_t num_new = BlocksFor(table.num_tokens) - num_shared;
  const int64_t num_revived =
      std::ranges::count_if(table.blocks, [this](BlockId block) { return pool_.ref_count(block) == 0; });
  if (num_new + num_revived + admission.num_headroom_blocks > num_available_blocks()) return std::nullopt;

  // Owned before others are taken, so that none of them is evicted for those.
  for (const BlockId block : table.blocks) ShareBlock(block);
  AppendBlocks(num_new, &table);
  const int64_t num_cached_tokens = num_shared * block_size_;
  if (admission.max_cached_tokens > 0) num_prefix_query_tokens_ += table.num_tokens;
  num_prefix_hit_tokens_ += num_cached_tokens;
  tables_.emplace(admission.request, std::move(table));
  return num_cached_tokens;
}

void KvCacheManager::FollowPrefix(const CacheAdmission& admission, Table* table) const {
  if (!index_) return;
  const int64_t num_tokens = std::min(admission.max_cached_tokens, table->num_tokens - 1);
  for (int64_t first = 0; first + block_size_ <= num_tokens; first += block_size_) {
    const auto token_ids = admission.token_ids.subspan(static_cast<size_t>(first), static_cast<size_t>(block_size_));
    const BlockId block = index_->Find(admission.cache_namespace, token_ids, &table->prefix);
    if (block < 0) return;
    table->blocks.push_back(block);
    ++table->num_indexed_blocks;
  }
}

bool KvCacheManager::AllocateSlots(RequestId request, int64_t num_tokens) {
  const Table* known = FindTable(request);
  const int64_t num_owned = known != nullptr ? static_cast<int64_t>(known->blocks.size()) : 0;
  const int64_t num_missing = std::max<int64_t>(0, BlocksFor(num_tokens) - num_owned);
  if (num_missing > num_available_blocks()) return false;
  Table& table = tables_[request];
  AppendBlocks(num_missing, &table);
  table.num_tokens = std::max(table.num_tokens, num_tokens);
  return true;
}

void KvCacheManager::AppendBlocks(int64_t num_blocks, Table* table) {
  const size_t num_before = table->blocks.size();
  QUIRE_CHECK(pool_.Allocate(num_blocks, &table->blocks));
  for (size_t i = num_before; i < table->blocks.size(); ++i) {
    if (!IsFindable(table->blocks[i])) continue;
    index_->Erase(table->blocks[i]);
    --num_cached_blocks_;
    ++num_evictions_;
  }
  peak_used_blocks_ = std::max(peak_used_blocks_, pool_.num_used_blocks());
}

void KvCacheManager::ShareBlock(BlockId block) {
  if (pool_.ref_count(block) == 0) --num_cached_blocks_;
  pool_.AddReference(block);
}

void KvCacheManager::DropBlock(BlockId block) {
  const bool findable = IsFindable(block);
  if (!pool_.DropReference(block, findable ? Reuse::kLast : Reuse::kFirst)) return;
  last_owned_times_[static_cast<size_t>(block)] = clock_->Now();
  if (findable) ++num_cached_blocks_;
}

void KvCacheManager::CacheComputed(RequestId request, std::span<const TokenId> token_ids, int64_t num_computed_tokens) {
  if (!index_) return;
  const auto found = tables_.find(request);
  QUIRE_CHECK(found != tables_.end());
  Table& table = found->second;
  if (table.cache_namespace == nullptr) return;
  const int64_t num_full_blocks = num_computed_tokens / block_size_;
  for (int64_t& i = table.num_indexed_blocks; i < num_full_blocks; ++i) {
    const auto block_tokens = token_ids.subspan(static_cast<size_t>(i * block_size_), static_cast<size_t>(block_size_));
    index_->Insert(table.blocks[static_cast<size_t>(i)], table.cache_namespace, block_tokens, &table.prefix);
  }
}

void KvCacheManager::Truncate(RequestId request, int64_t num_tokens) {
  const auto found = tables_.find(request);
  QUIRE_CHECK(found != tables_.end());
  Table& table = found->second;
  if (num_tokens >= table.num_tokens) return;
  const size_t num_kept = static_cast<size_t>(BlocksFor(num_tokens));
  while (table.blocks.size() > num_kept) {
    DropBlock(table.blocks.back());
    table.blocks.pop_back();
  }
  table.num_tokens = num_tokens;
  // What the last block held past `num_tokens` will be overwritten, whoever made it findable.
  if (index_ && num_tokens % block_size_ != 0) index_->Erase(table.blocks.back());
  if (table.num_indexed_blocks * block_size_ <= num_tokens) return;
  // The blocks before it are followed anew.
  table.prefix = {};
  table.num_indexed_blocks = 0;
}

void KvCacheManager::Fork(RequestId parent, RequestId child) {
  const Table* source = FindTable(parent);
  QUIRE_CHECK(source != nullptr);
  QUIRE_CHECK(FindTable(child) == nullptr);
  for (const BlockId block : source->blocks) ShareBlock(block);
  tables_.emplace(child, *source);
}

void KvCacheManager::Free(RequestId request) {
  const auto found = tables_.find(request);
  if (found == tables_.end()) return;
  const std::vector<BlockId>& blocks = found->second.blocks;
  std::for_each(blocks.rbegin(), blocks.rend(), [this](BlockId block) { DropBlock(block); });
  tables_.erase(found);
}

int64_t KvCacheManager::ClearPrefixCache() {
  if (!index_) return 0;
  for (BlockId block = 0; block < num_blocks(); ++block) index_->Erase(block);
  for (auto& [request, table] : tables_) {
    table.prefix = {};
    table.num_indexed_blocks = 0;
  }
  return std::exchange(num_cached_blocks_, 0);
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
  KvCacheUsage usage = {.num_blocks = pool_.num_blocks(),
                        .num_used_blocks = pool_.num_used_blocks(),
                        .num_free_blocks = pool_.num_free_blocks() - num_cached_blocks_,
                        .num_cached_blocks = num_cached_blocks_,
                        .num_stored_tokens = CountStoredTokens(),
                        .peak_used_blocks = peak_used_blocks_,
                        .num_prefix_query_tokens = num_prefix_query_tokens_,
                        .num_prefix_hit_tokens = num_prefix_hit_tokens_,
                        .num_evictions = num_evictions_,
                        .cached_block_ages = CachedBlockAges()};
  for (BlockId id = 0; id < num_blocks(); ++id) usage.num_shared_blocks += pool_.ref_count(id) > 1 ? 1 : 0;
  return usage;
}

KvCacheSnapshot KvCacheManager::Snapshot() const {
  KvCacheSnapshot snapshot;
  snapshot.block_size = block_size_;
  snapshot.ref_counts.reserve(static_cast<size_t>(num_blocks()));
  snapshot.prefix_ids.reserve(static_cast<size_t>(num_blocks()));
  for (BlockId id = 0; id < num_blocks(); ++id) {
    snapshot.ref_counts.push_back(pool_.ref_count(id));
    snapshot.prefix_ids.push_back(index_ ? index_->id(id) : 0);
  }
  snapshot.free_blocks = pool_.FreeBlockIds();
  for (const auto& [request, table] : tables_) {
    snapshot.tables.push_back({.request = request,
                               .num_tokens = table.num_tokens,
                               .num_indexed_blocks = table.num_indexed_blocks,
                               .blocks = table.blocks});
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

Histogram KvCacheManager::CachedBlockAges() const {
  Histogram ages({1, 10, 60, 600, 3600});
  const TimePoint now = clock_->Now();
  for (BlockId block = 0; block < num_blocks(); ++block) {
    if (pool_.ref_count(block) > 0 || !IsFindable(block)) continue;
    ages.Add(ToSeconds(now - last_owned_times_[static_cast<size_t>(block)]));
  }
  return ages;
}

}  // namespace quire
