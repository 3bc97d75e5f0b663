#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/base/ids.h"
#include "engine/tensor/dtype.h"

namespace quire {

// How one layer's keys and values lie in memory: per block and kv head a tile of keys and a tile of values, each in the
// orientation that the attention kernels read, so that decode gathers and repacks nothing.
//   keys   f32, int8 [num_blocks, num_kv_heads, head_dim, block_size]; bf16 [.., head_dim / 2, block_size, 2]
//   values f32, int8 [num_blocks, num_kv_heads, block_size, head_dim]; bf16 [.., block_size / 2, head_dim, 2]
// The bf16 forms are packed in pairs along the dimension that the matmul sums over, so that one load brings both of a
// pair and a shift or a mask makes them f32. An int8 tile's end holds its tokens' scales, f32 [block_size]: an element
// stands for itself times its token's scale.
struct KvLayout {
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;    // even
  int64_t block_size = 0;  // tokens; a multiple of 16 that divides 256
  DType dtype = DType::kBF16;

  int64_t ScaleBytesPerTile() const { return dtype == DType::kInt8 ? block_size * SizeOf(DType::kF32) : 0; }
  int64_t TileBytes() const { return head_dim * block_size * SizeOf(dtype) + ScaleBytesPerTile(); }
  // Of keys and values together, for one layer.
  int64_t BytesPerBlock() const { return 2 * num_kv_heads * TileBytes(); }
  // Where an int8 tile's scales begin.
  int64_t ScaleOffset() const { return head_dim * block_size; }
};

// One layer's keys and values, owned by somebody else.
struct KvLayerView {
  KvLayout layout;
  std::byte* keys = nullptr;
  std::byte* values = nullptr;

  std::byte* KeyTile(BlockId block, int64_t kv_head) const {
    return keys + (block * layout.num_kv_heads + kv_head) * layout.TileBytes();
  }
  std::byte* ValueTile(BlockId block, int64_t kv_head) const {
    return values + (block * layout.num_kv_heads + kv_head) * layout.TileBytes();
  }
};

}  // namespace quire
