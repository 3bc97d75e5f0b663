#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/base/ids.h"
#include "engine/ops/attention_kernels.h"
#include "engine/ops/kv_layout.h"

namespace quire {

// Where one kv head's keys and values of a key tile lie: in up to kKeyTile / 16 blocks, anywhere in the cache.
class KvTiles {
 public:
  // Tokens of a key tile.
  static constexpr int64_t kKeyTile = 256;

  // Of the blocks blocks[0 .. CeilDiv(num_keys, block_size)).
  KvTiles(const KvLayerView& cache, int64_t kv_head, const BlockId* blocks, int64_t num_keys);

  // Says which keys will be read after these values: at most as many, so that a thread need not wait for them.
  void ReadNext(const KvLayerView& cache, int64_t kv_head, const BlockId* blocks, int64_t num_keys);

  TileRun Keys() const { return Run(keys_, values_); }
  TileRun Values() const { return Run(values_, next_keys_); }

  // All keys as one f32 matrix with row stride out_stride, without an int8 cache's scales. // [head_dim, num_keys]
  void ExpandKeys(int64_t out_stride, float* out) const;
  // The first num_keys values as one f32 matrix, without scales, zero past num_keys. // [width, head_dim]
  void ExpandValues(int64_t width, float* out) const;
  // The same of a bf16 or int8 cache as bf16 in pairs along the dimension that the matmul sums over.
  void PackKeys(int64_t out_stride, BFloat16* out) const;  // [head_dim / 2, out_stride, 2]
  void PackValues(int64_t width, BFloat16* out) const;     // [width / 2, head_dim, 2]
  // The scales of an int8 cache's keys and values, each of whole blocks.
  void CopyScales(float* key_scales, float* value_scales) const;

 private:
  static constexpr int64_t kMaxBlocks = kKeyTile / 16;

  using Tiles = std::array<const std::byte*, kMaxBlocks>;

  TileRun Run(const Tiles& tiles, const Tiles& next_tiles) const {
    return {tiles.data(), next_tiles.data(), num_blocks_, layout_.block_size, layout_.head_dim, layout_.dtype};
  }

  KvLayout layout_;
  int64_t num_keys_;
  int64_t num_blocks_;
  Tiles keys_;       // [num_blocks]
  Tiles values_;     // [num_blocks]
  Tiles next_keys_;  // the values themselves where nothing is known // [num_blocks]
};

}  // namespace quire
