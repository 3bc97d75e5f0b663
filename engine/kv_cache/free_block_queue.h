#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/ids.h"
#include "engine/kv_cache/kv_block.h"

namespace quire {

// Free blocks in the order in which they are given out again. The links live in the blocks, so that every operation
// takes constant time and no memory. A block may be in one queue only and must outlive its stay there.
class FreeBlockQueue {
 public:
  FreeBlockQueue();
  FreeBlockQueue(const FreeBlockQueue&) = delete;
  FreeBlockQueue& operator=(const FreeBlockQueue&) = delete;

  int64_t size() const { return size_; }

  // `block` must not be in a queue.
  void PushFront(KvBlock* block);
  void PushBack(KvBlock* block);
  // The queue must not be empty.
  KvBlock* PopFront();
  // `block` must be in this queue.
  void Remove(KvBlock* block);

  // Front to back; for validation.
  std::vector<BlockId> BlockIds() const;

 private:
  void InsertBefore(KvBlock* next, KvBlock* block);

  KvBlock end_;  // its next_free is the front, its previous_free the back: a ring without special cases
  int64_t size_ = 0;
};

}  // namespace quire
