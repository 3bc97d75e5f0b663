#pragma once

#include "engine/base/ids.h"
#include "engine/ops/kv_layout.h"

namespace quire {

// Stores one token's keys and values, each [num_kv_heads, head_dim], in its slot, rounding to the layout's type.
void WriteKv(const KvLayerView& cache, SlotId slot, const float* keys, const float* values);

// Copies all tiles of a block to another block of the same layer.
void CopyKvBlock(const KvLayerView& cache, BlockId from, BlockId to);

}  // namespace quire
