#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/ids.h"
#include "engine/kv_cache/free_block_queue.h"
#include "engine/kv_cache/kv_block.h"

namespace quire {

// When a block without owners is given out again.
enum class Reuse {
  kFirst,  // before all others: it holds nothing worth keeping
  kLast,   // after all others: somebody may come back for what it holds
};

// Blocks with reference counts. Knows neither requests nor tokens. Not thread-safe.
class BlockPool {
 public:
  // `num_blocks` >= 1.
  explicit BlockPool(int64_t num_blocks);

  int64_t num_blocks() const { return static_cast<int64_t>(blocks_.size()); }
  int64_t num_free_blocks() const { return free_queue_.size(); }
  int64_t num_used_blocks() const { return num_blocks() - num_free_blocks(); }
  int32_t ref_count(BlockId id) const;

  // Appends the first `num_blocks` of the free queue to `ids`, each with one reference.
  // All or nothing: false, and nothing changed, if fewer are free.
  [[nodiscard]] bool Allocate(int64_t num_blocks, std::vector<BlockId>* ids);

  // One more owner. A block without owners leaves the free queue.
  void AddReference(BlockId id);

  // One owner less. True: it was the last one, and the block is in the free queue, where `reuse` says.
  bool DropReference(BlockId id, Reuse reuse);

  // Next to be given out first; for validation.
  std::vector<BlockId> FreeBlockIds() const { return free_queue_.BlockIds(); }

 private:
  KvBlock& block(BlockId id);
  const KvBlock& block(BlockId id) const;

  std::vector<KvBlock> blocks_;  // [num_blocks], never resized: the queue links them
  FreeBlockQueue free_queue_;
};

}  // namespace quire
