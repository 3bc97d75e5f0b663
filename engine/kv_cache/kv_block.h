#pragma once

#include <cstdint>

#include "engine/base/ids.h"

namespace quire {

// The record of one block. Its contents live elsewhere; here it is an id with owners.
struct KvBlock {
  BlockId id = 0;
  int32_t ref_count = 0;  // owners; 0 exactly while the block is in the free queue
  // Links of FreeBlockQueue; null outside it.
  KvBlock* previous_free = nullptr;
  KvBlock* next_free = nullptr;
};

}  // namespace quire
