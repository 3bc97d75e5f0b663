#include "engine/kv_cache/block_pool.h"

#include <limits>

#include "engine/base/check.h"

namespace quire {

BlockPool::BlockPool(int64_t num_blocks) {
  QUIRE_CHECK_LE(1, num_blocks);
  QUIRE_CHECK_LE(num_blocks, std::numeric_limits<BlockId>::max());
  blocks_.resize(static_cast<size_t>(num_blocks));
  BlockId next_id = 0;
  for (KvBlock& block : blocks_) {
    block.id = next_id++;
    free_queue_.PushBack(&block);
  }
}

int32_t BlockPool::ref_count(BlockId id) const { return block(id).ref_count; }

bool BlockPool::Allocate(int64_t num_blocks, std::vector<BlockId>* ids) {
  if (num_blocks > free_queue_.size()) return false;
  for (int64_t i = 0; i < num_blocks; ++i) {
    KvBlock* block = free_queue_.PopFront();
    block->ref_count = 1;
    ids->push_back(block->id);
  }
  return true;
}

void BlockPool::AddReference(BlockId id) {
  KvBlock& shared = block(id);
  if (shared.ref_count++ == 0) free_queue_.Remove(&shared);
}

bool BlockPool::DropReference(BlockId id, Reuse reuse) {
  KvBlock& dropped = block(id);
  QUIRE_CHECK_LT(0, dropped.ref_count);
  if (--dropped.ref_count > 0) return false;
  reuse == Reuse::kFirst ? free_queue_.PushFront(&dropped) : free_queue_.PushBack(&dropped);
  return true;
}

KvBlock& BlockPool::block(BlockId id) {
  QUIRE_CHECK_LE(0, id);
  QUIRE_CHECK_LT(id, num_blocks());
  return blocks_[static_cast<size_t>(id)];
}

const KvBlock& BlockPool::block(BlockId id) const { return const_cast<BlockPool*>(this)->block(id); }

}  // namespace quire
