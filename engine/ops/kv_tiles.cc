#include "engine/ops/kv_tiles.h"

#include <algorithm>
#include <cstring>

#include "engine/base/math.h"
#include "engine/ops/convert.h"

namespace quire {

KvTiles::KvTiles(const KvLayerView& cache, int64_t kv_head, const BlockId* blocks, int64_t num_keys)
    : layout_(cache.layout), num_keys_(num_keys), num_blocks_(CeilDiv(num_keys, cache.layout.block_size)) {
  for (int64_t i = 0; i < num_blocks_; ++i) {
    keys_[i] = cache.KeyTile(blocks[i], kv_head);
    next_keys_[i] = values_[i] = cache.ValueTile(blocks[i], kv_head);
  }
}

void KvTiles::ReadNext(const KvLayerView& cache, int64_t kv_head, const BlockId* blocks, int64_t num_keys) {
  const int64_t num_blocks = std::min(num_blocks_, CeilDiv(num_keys, layout_.block_size));
  for (int64_t i = 0; i < num_blocks; ++i) next_keys_[i] = cache.KeyTile(blocks[i], kv_head);
}

void KvTiles::ExpandKeys(int64_t out_stride, float* out) const {
  const int64_t block_size = layout_.block_size;
  for (int64_t i = 0; i < num_blocks_; ++i) {
    float* columns = out + i * block_size;
    switch (layout_.dtype) {
      case DType::kF32:
        for (int64_t d = 0; d < layout_.head_dim; ++d) {
          std::memcpy(columns + d * out_stride, reinterpret_cast<const float*>(keys_[i]) + d * block_size,
                      block_size * sizeof(float));
        }
        break;
      case DType::kBF16:
        ExpandBFloat16Pairs(reinterpret_cast<const BFloat16*>(keys_[i]), layout_.head_dim, block_size, columns,
                            out_stride);
        break;
      case DType::kInt8:
        ExpandInt8(reinterpret_cast<const int8_t*>(keys_[i]), layout_.head_dim, block_size, columns, out_stride);
        break;
    }
  }
}

void KvTiles::ExpandValues(int64_t width, float* out) const {
  const int64_t head_dim = layout_.head_dim;
  const int64_t block_size = layout_.block_size;
  for (int64_t i = 0; i < num_blocks_; ++i) {
    float* rows = out + i * block_size * head_dim;
    switch (layout_.dtype) {
      case DType::kF32: std::memcpy(rows, values_[i], block_size * head_dim * sizeof(float)); break;
      case DType::kBF16:
        ExpandBFloat16Pairs(reinterpret_cast<const BFloat16*>(values_[i]), block_size, head_dim, rows, head_dim);
        break;
      case DType::kInt8:
        ExpandInt8(reinterpret_cast<const int8_t*>(values_[i]), block_size, head_dim, rows, head_dim);
        break;
    }
  }
  std::fill(out + num_keys_ * head_dim, out + width * head_dim, 0.0F);
}

void KvTiles::PackKeys(int64_t out_stride, BFloat16* out) const {
  const int64_t block_size = layout_.block_size;
  for (int64_t i = 0; i < num_blocks_; ++i) {
    BFloat16* columns = out + i * block_size * 2;
    if (layout_.dtype == DType::kInt8) {
      PackInt8Pairs(reinterpret_cast<const int8_t*>(keys_[i]), layout_.head_dim, block_size, columns, out_stride);
      continue;
    }
    const auto* pairs = reinterpret_cast<const BFloat16*>(keys_[i]);
    for (int64_t d = 0; d < layout_.head_dim; d += 2) {
      std::memcpy(columns + d * out_stride, pairs + d * block_size, block_size * 2 * sizeof(BFloat16));
    }
  }
}

void KvTiles::PackValues(int64_t width, BFloat16* out) const {
  const int64_t head_dim = layout_.head_dim;
  const int64_t block_size = layout_.block_size;
  for (int64_t i = 0; i < num_blocks_; ++i) {
    BFloat16* rows = out + i * block_size * head_dim;
    if (layout_.dtype == DType::kInt8) {
      PackInt8Pairs(reinterpret_cast<const int8_t*>(values_[i]), block_size, head_dim, rows, head_dim);
    } else {
      std::memcpy(rows, values_[i], block_size * head_dim * sizeof(BFloat16));
    }
  }
  if (num_keys_ % 2 == 1) {
    BFloat16* last_pairs = out + (num_keys_ - 1) * head_dim;
    for (int64_t d = 0; d < head_dim; ++d) last_pairs[2 * d + 1] = BFloat16();
  }
  std::fill(out + AlignUp<int64_t>(num_keys_, 2) * head_dim, out + width * head_dim, BFloat16());
}

void KvTiles::CopyScales(float* key_scales, float* value_scales) const {
  const int64_t bytes = layout_.ScaleBytesPerTile();
  for (int64_t i = 0; i < num_blocks_; ++i) {
    std::memcpy(key_scales + i * layout_.block_size, keys_[i] + layout_.ScaleOffset(), bytes);
    std::memcpy(value_scales + i * layout_.block_size, values_[i] + layout_.ScaleOffset(), bytes);
  }
}

}  // namespace quire
