#include "engine/ops/kv_write.h"

#include <cstring>

namespace quire {
namespace {

void WriteF32(const KvLayout& layout, int64_t offset, const float* key, const float* value, std::byte* key_tile,
              std::byte* value_tile) {
  auto* keys = reinterpret_cast<float*>(key_tile) + offset;
  for (int64_t d = 0; d < layout.head_dim; ++d) keys[d * layout.block_size] = key[d];
  std::memcpy(reinterpret_cast<float*>(value_tile) + offset * layout.head_dim, value, layout.head_dim * sizeof(float));
}

void WriteBf16(const KvLayout& layout, int64_t offset, const float* key, const float* value, std::byte* key_tile,
               std::byte* value_tile) {
  auto* keys = reinterpret_cast<BFloat16*>(key_tile) + offset * 2;
  auto* values = reinterpret_cast<BFloat16*>(value_tile) + offset / 2 * layout.head_dim * 2 + offset % 2;
  for (int64_t d = 0; d < layout.head_dim; ++d) {
    keys[d / 2 * layout.block_size * 2 + d % 2] = ToBFloat16(key[d]);
    values[d * 2] = ToBFloat16(value[d]);
  }
}

}  // namespace

void WriteKv(const KvLayerView& cache, SlotId slot, const float* keys, const float* values) {
  const KvLayout& layout = cache.layout;
  const auto block = static_cast<BlockId>(slot / layout.block_size);
  const int64_t offset = slot % layout.block_size;
  const auto write = layout.dtype == DType::kF32 ? WriteF32 : WriteBf16;
  for (int64_t head = 0; head < layout.num_kv_heads; ++head) {
    write(layout, offset, keys + head * layout.head_dim, values + head * layout.head_dim, cache.KeyTile(block, head),
          cache.ValueTile(block, head));
  }
}

void CopyKvBlock(const KvLayerView& cache, BlockId from, BlockId to) {
  const int64_t bytes = cache.layout.num_kv_heads * cache.layout.TileBytes();
  std::memcpy(cache.KeyTile(to, 0), cache.KeyTile(from, 0), bytes);
  std::memcpy(cache.ValueTile(to, 0), cache.ValueTile(from, 0), bytes);
}

}  // namespace quire
