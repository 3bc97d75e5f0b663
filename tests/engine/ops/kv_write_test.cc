#include "engine/ops/kv_write.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "engine/tensor/buffer.h"

namespace quire::testing {
namespace {

constexpr int64_t kNumBlocks = 3;

std::vector<float> RandomRow(int64_t size, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> row(size);
  for (float& value : row) value = normal(random);
  return row;
}

class Cache {
 public:
  explicit Cache(const KvLayout& layout)
      : bytes_(kNumBlocks * layout.BytesPerBlock()),
        view_{layout, bytes_.data(), bytes_.data() + bytes_.size_bytes() / 2} {}

  const KvLayerView& view() const { return view_; }

  // One element as the layout's documentation places it, and its token's scale.
  float Key(SlotId slot, int64_t head, int64_t dim) const {
    const auto [tile, token] = TileOf(slot, head, /*values=*/false);
    const int64_t block_size = view_.layout.block_size;
    if (view_.layout.dtype == DType::kBF16) return Bf16(tile, (dim / 2 * block_size + token) * 2 + dim % 2);
    return Element(tile, dim * block_size + token) * Scale(tile, token);
  }
  float Value(SlotId slot, int64_t head, int64_t dim) const {
    const auto [tile, token] = TileOf(slot, head, /*values=*/true);
    const int64_t head_dim = view_.layout.head_dim;
    if (view_.layout.dtype == DType::kBF16) return Bf16(tile, (token / 2 * head_dim + dim) * 2 + token % 2);
    return Element(tile, token * head_dim + dim) * Scale(tile, token);
  }
  bool BlocksAreEqual(BlockId a, BlockId b) const {
    const int64_t bytes = view_.layout.BytesPerBlock() / 2;
    return std::memcmp(view_.KeyTile(a, 0), view_.KeyTile(b, 0), bytes) == 0 &&
           std::memcmp(view_.ValueTile(a, 0), view_.ValueTile(b, 0), bytes) == 0;
  }

 private:
  struct Place {
    const std::byte* tile;
    int64_t token;
  };
  Place TileOf(SlotId slot, int64_t head, bool values) const {
    const auto block = static_cast<BlockId>(slot / view_.layout.block_size);
    return {values ? view_.ValueTile(block, head) : view_.KeyTile(block, head), slot % view_.layout.block_size};
  }
  static float Bf16(const std::byte* tile, int64_t i) { return ToFloat(reinterpret_cast<const BFloat16*>(tile)[i]); }
  float Element(const std::byte* tile, int64_t i) const {
    if (view_.layout.dtype == DType::kF32) return reinterpret_cast<const float*>(tile)[i];
    return reinterpret_cast<const int8_t*>(tile)[i];
  }
  float Scale(const std::byte* tile, int64_t token) const {
    if (view_.layout.dtype != DType::kInt8) return 1.0F;
    return reinterpret_cast<const float*>(tile + view_.layout.ScaleOffset())[token];
  }

  Buffer bytes_;
  KvLayerView view_;
};

// The most that storing may move an element of a row.
double HalfStep(DType dtype, const float* row, int64_t count, float element) {
  if (dtype == DType::kF32) return 0;
  if (dtype == DType::kBF16) return std::abs(element) / 256;
  double max = 0;
  for (int64_t i = 0; i < count; ++i) max = std::max(max, std::abs(static_cast<double>(row[i])));
  return max / 127 / 2 * (1 + 1e-5);
}

}  // namespace

TEST_CASE("what is written is read back within half a step, where the layout says", "[ops]") {
  const DType dtype = GENERATE(DType::kF32, DType::kBF16, DType::kInt8);
  const int64_t head_dim = GENERATE(2, 6, 40, 64, 96, 130);
  const int64_t block_size = GENERATE(16, 64);
  const KvLayout layout = {.num_kv_heads = 3, .head_dim = head_dim, .block_size = block_size, .dtype = dtype};
  const Cache cache(layout);
  const int64_t size = layout.num_kv_heads * head_dim;
  for (const SlotId slot : {SlotId{0}, SlotId{7}, 2 * block_size + 15, block_size + 4}) {
    WriteKv(cache.view(), slot, RandomRow(size, slot).data(), RandomRow(size, slot + 1000).data());
  }
  for (const SlotId slot : {SlotId{0}, SlotId{7}, 2 * block_size + 15, block_size + 4}) {
    const std::vector<float> keys = RandomRow(size, slot);
    const std::vector<float> values = RandomRow(size, slot + 1000);
    for (int64_t i = 0; i < size; ++i) {
      const int64_t head = i / head_dim;
      const double key_bound = HalfStep(dtype, keys.data() + head * head_dim, head_dim, keys[i]);
      const double value_bound = HalfStep(dtype, values.data() + head * head_dim, head_dim, values[i]);
      REQUIRE(std::abs(cache.Key(slot, head, i % head_dim) - keys[i]) <= key_bound);
      REQUIRE(std::abs(cache.Value(slot, head, i % head_dim) - values[i]) <= value_bound);
    }
  }
}

TEST_CASE("int8 keeps zeros, very small rows and a row's greatest element, and shows what is not finite", "[ops]") {
  const KvLayout layout = {.num_kv_heads = 1, .head_dim = 8, .block_size = 16, .dtype = DType::kInt8};
  const Cache cache(layout);
  const std::vector<float> zeros(8);
  std::vector<float> row = {-3.0F, 1e-4F, 0, 2.5F, 0, 0, 0, 0};
  WriteKv(cache.view(), 0, zeros.data(), row.data());
  for (int64_t i = 0; i < 8; ++i) CHECK(cache.Key(0, 0, i) == 0.0F);
  CHECK(std::abs(cache.Value(0, 0, 0) + 3.0F) <= 1e-6F);
  CHECK(cache.Value(0, 0, 1) == 0.0F);
  const std::vector<float> small(8, -1e-40F);
  WriteKv(cache.view(), 1, small.data(), small.data());
  CHECK(std::abs(cache.Key(1, 0, 3)) <= 1e-38F);
  for (const float broken : {std::numeric_limits<float>::infinity(), std::numeric_limits<float>::quiet_NaN()}) {
    row[5] = broken;
    WriteKv(cache.view(), 2, row.data(), row.data());
    CHECK(std::isnan(cache.Key(2, 0, 0)));
    CHECK(std::isnan(cache.Value(2, 0, 5)));
  }
}

TEST_CASE("a copied block has all of the other's elements and scales", "[ops]") {
  const DType dtype = GENERATE(DType::kF32, DType::kBF16, DType::kInt8);
  const KvLayout layout = {.num_kv_heads = 2, .head_dim = 6, .block_size = 16, .dtype = dtype};
  const Cache cache(layout);
  for (SlotId slot = 16; slot < 32; ++slot) {
    WriteKv(cache.view(), slot, RandomRow(12, slot).data(), RandomRow(12, slot + 1000).data());
  }
  CHECK(!cache.BlocksAreEqual(0, 1));
  CopyKvBlock(cache.view(), 1, 0);
  CHECK(cache.BlocksAreEqual(0, 1));
  CHECK(!cache.BlocksAreEqual(2, 1));
  CHECK(cache.Key(15, 1, 5) == cache.Key(31, 1, 5));
  CHECK(cache.Value(15, 1, 5) == cache.Value(31, 1, 5));
}

}  // namespace quire::testing
