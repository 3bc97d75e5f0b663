#include "engine/kv_cache/free_block_queue.h"

#include "engine/base/check.h"

namespace quire {

FreeBlockQueue::FreeBlockQueue() {
  end_.next_free = &end_;
  end_.previous_free = &end_;
}

void FreeBlockQueue::PushFront(KvBlock* block) { InsertBefore(end_.next_free, block); }

void FreeBlockQueue::PushBack(KvBlock* block) { InsertBefore(&end_, block); }

void FreeBlockQueue::InsertBefore(KvBlock* next, KvBlock* block) {
  QUIRE_CHECK(block->next_free == nullptr);
  block->next_free = next;
  block->previous_free = next->previous_free;
  block->previous_free->next_free = block;
  next->previous_free = block;
  ++size_;
}

KvBlock* FreeBlockQueue::PopFront() {
  QUIRE_CHECK_LT(0, size_);
  KvBlock* front = end_.next_free;
  Remove(front);
  return front;
}

void FreeBlockQueue::Remove(KvBlock* block) {
  QUIRE_CHECK(block->next_free != nullptr);
  block->previous_free->next_free = block->next_free;
  block->next_free->previous_free = block->previous_free;
  block->previous_free = nullptr;
  block->next_free = nullptr;
  --size_;
}

std::vector<BlockId> FreeBlockQueue::BlockIds() const {
  std::vector<BlockId> ids;
  ids.reserve(static_cast<size_t>(size_));
  for (const KvBlock* block = end_.next_free; block != &end_; block = block->next_free) ids.push_back(block->id);
  return ids;
}

}  // namespace quire
