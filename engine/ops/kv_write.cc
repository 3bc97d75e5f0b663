#include "engine/ops/kv_write.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "engine/ops/convert.h"

namespace quire {
namespace {

// One token's key and value of one kv head, and its place in their tiles.
struct TokenOfHead {
  const float* key;    // [head_dim]
  const float* value;  // [head_dim]
  std::byte* key_tile;
  std::byte* value_tile;
  int64_t offset;  // in the block
};

void WriteF32(const KvLayout& layout, const TokenOfHead& token) {
  auto* keys = reinterpret_cast<float*>(token.key_tile) + token.offset;
  for (int64_t d = 0; d < layout.head_dim; ++d) keys[d * layout.block_size] = token.key[d];
  std::memcpy(reinterpret_cast<float*>(token.value_tile) + token.offset * layout.head_dim, token.value,
              layout.head_dim * sizeof(float));
}

// Calls body(first, count) for pieces of a row that are converted at once, before they are scattered.
constexpr int64_t kPiece = 64;
template <typename Body>
void ForPieces(int64_t size, const Body& body) {
  for (int64_t first = 0; first < size; first += kPiece) body(first, std::min(kPiece, size - first));
}

void WriteBf16(const KvLayout& layout, const TokenOfHead& token) {
  auto* keys = reinterpret_cast<BFloat16*>(token.key_tile) + token.offset * 2;
  auto* values =
      reinterpret_cast<BFloat16*>(token.value_tile) + token.offset / 2 * layout.head_dim * 2 + token.offset % 2;
  ForPieces(layout.head_dim, [&](int64_t first, int64_t count) {
    std::array<BFloat16, kPiece> piece;
    ConvertToBFloat16(token.key + first, count, piece.data());
    for (int64_t i = 0; i < count; i += 2) {
      std::memcpy(keys + (first + i) * layout.block_size, &piece[i], 2 * sizeof(BFloat16));
    }
    ConvertToBFloat16(token.value + first, count, piece.data());
    for (int64_t i = 0; i < count; ++i) values[(first + i) * 2] = piece[i];
  });
}

void WriteInt8(const KvLayout& layout, const TokenOfHead& token) {
  const int64_t head_dim = layout.head_dim;
  const auto set_scale = [&](std::byte* tile, float scale) {
    reinterpret_cast<float*>(tile + layout.ScaleOffset())[token.offset] = scale;
  };
  const float key_scale = Int8ScaleOf(token.key, head_dim);
  set_scale(token.key_tile, key_scale);
  auto* keys = reinterpret_cast<int8_t*>(token.key_tile) + token.offset;
  ForPieces(head_dim, [&](int64_t first, int64_t count) {
    std::array<int8_t, kPiece> piece;
    ConvertToInt8(token.key + first, key_scale, count, piece.data());
    for (int64_t i = 0; i < count; ++i) keys[(first + i) * layout.block_size] = piece[i];
  });
  const float value_scale = Int8ScaleOf(token.value, head_dim);
  set_scale(token.value_tile, value_scale);
  ConvertToInt8(token.value, value_scale, head_dim,
                reinterpret_cast<int8_t*>(token.value_tile) + token.offset * head_dim);
}

void WriteToken(const KvLayout& layout, const TokenOfHead& token) {
  switch (layout.dtype) {
    case DType::kF32: return WriteF32(layout, token);
    case DType::kBF16: return WriteBf16(layout, token);
    case DType::kInt8: return WriteInt8(layout, token);
  }
}

}  // namespace

void WriteKv(const KvLayerView& cache, SlotId slot, const float* keys, const float* values) {
  const KvLayout& layout = cache.layout;
  const auto block = static_cast<BlockId>(slot / layout.block_size);
  for (int64_t head = 0; head < layout.num_kv_heads; ++head) {
    WriteToken(layout, {.key = keys + head * layout.head_dim,
                        .value = values + head * layout.head_dim,
                        .key_tile = cache.KeyTile(block, head),
                        .value_tile = cache.ValueTile(block, head),
                        .offset = slot % layout.block_size});
  }
}

void CopyKvBlock(const KvLayerView& cache, BlockId from, BlockId to) {
  const int64_t bytes = cache.layout.num_kv_heads * cache.layout.TileBytes();
  std::memcpy(cache.KeyTile(to, 0), cache.KeyTile(from, 0), bytes);
  std::memcpy(cache.ValueTile(to, 0), cache.ValueTile(from, 0), bytes);
}

}  // namespace quire
