#include <bit>
#include <cstring>

#include "engine/base/check.h"
#include "engine/checkpoint/checkpoint.h"

// The loops are written so that a compiler vectorises them: fixed trip counts, no branches, blocks copied out of
// the file's bytes because those need not be aligned.
namespace quire {
namespace {

constexpr int64_t kBlockElements = 32;

// Exact for every binary16, subnormals, infinities and NaNs included; only selects, no branches.
inline float HalfToFloat(uint16_t half) {
  const uint32_t magnitude = half & 0x7fffU;
  const uint32_t sign = (half & 0x8000U) << 16;
  // Moves the exponent's bias from 15 to 127, and the exponent of infinities and NaNs from 31 to 255.
  const uint32_t rebias = magnitude >= 0x7c00U ? 224U << 23 : 112U << 23;
  const uint32_t normal = (magnitude << 13) + rebias;
  // 0.5 + magnitude * 2^-24 holds a subnormal's bits exactly; the subtraction normalises them.
  const auto subnormal = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude | 0x3f000000U) - 0.5F);
  return std::bit_cast<float>((magnitude < 0x0400U ? subnormal : normal) | sign);
}

struct BlockQ8_0 {
  uint16_t scale;
  int8_t quants[kBlockElements];
};
static_assert(sizeof(BlockQ8_0) == 34);

struct BlockQ4_0 {
  uint16_t scale;
  uint8_t quants[kBlockElements / 2];  // low nibbles: elements [0, 16), high nibbles: [16, 32)
};
static_assert(sizeof(BlockQ4_0) == 18);

struct BlockQ4_1 {
  uint16_t scale;
  uint16_t minimum;
  uint8_t quants[kBlockElements / 2];  // as in BlockQ4_0
};
static_assert(sizeof(BlockQ4_1) == 20);

void DequantizeBlock(const BlockQ8_0& block, float* out) {
  const float scale = HalfToFloat(block.scale);
  for (int64_t i = 0; i < kBlockElements; ++i) out[i] = static_cast<float>(block.quants[i]) * scale;
}

void DequantizeBlock(const BlockQ4_0& block, float* out) {
  const float scale = HalfToFloat(block.scale);
  for (int64_t i = 0; i < kBlockElements / 2; ++i) {
    const int low = block.quants[i] & 0x0f;
    const int high = block.quants[i] >> 4;
    out[i] = static_cast<float>(low - 8) * scale;
    out[i + kBlockElements / 2] = static_cast<float>(high - 8) * scale;
  }
}

void DequantizeBlock(const BlockQ4_1& block, float* out) {
  const float scale = HalfToFloat(block.scale);
  const float minimum = HalfToFloat(block.minimum);
  for (int64_t i = 0; i < kBlockElements / 2; ++i) {
    const int low = block.quants[i] & 0x0f;
    const int high = block.quants[i] >> 4;
    out[i] = static_cast<float>(low) * scale + minimum;
    out[i + kBlockElements / 2] = static_cast<float>(high) * scale + minimum;
  }
}

void UnpackBlock(const BlockQ8_0& block, uint8_t* quants, uint16_t* minimum) {
  for (int64_t i = 0; i < kBlockElements; ++i) quants[i] = static_cast<uint8_t>(block.quants[i] + 128);
  *minimum = 0;
}

void UnpackNibbles(const uint8_t* nibbles, uint8_t* quants) {
  for (int64_t i = 0; i < kBlockElements / 2; ++i) {
    quants[i] = nibbles[i] & 0x0f;
    quants[i + kBlockElements / 2] = nibbles[i] >> 4;
  }
}

void UnpackBlock(const BlockQ4_0& block, uint8_t* quants, uint16_t* minimum) {
  UnpackNibbles(block.quants, quants);
  // Exact: a power of two only moves the exponent; past the largest half it is infinite, as the weights are then.
  const auto value = static_cast<_Float16>(HalfToFloat(block.scale) * -8.0F);
  std::memcpy(minimum, &value, sizeof(value));
}

void UnpackBlock(const BlockQ4_1& block, uint8_t* quants, uint16_t* minimum) {
  UnpackNibbles(block.quants, quants);
  *minimum = block.minimum;
}

template <typename Block>
void UnpackBlocks(std::span<const std::byte> bytes, uint8_t* quants, uint16_t* scales, uint16_t* minima) {
  const size_t num_blocks = bytes.size() / sizeof(Block);
  for (size_t b = 0; b < num_blocks; ++b) {
    Block block;
    std::memcpy(&block, bytes.data() + b * sizeof(Block), sizeof(Block));
    scales[b] = block.scale;
    UnpackBlock(block, quants + b * kBlockElements, minima + b);
  }
}

template <typename Block>
void DequantizeBlocks(std::span<const std::byte> bytes, float* out) {
  const size_t num_blocks = bytes.size() / sizeof(Block);
  for (size_t b = 0; b < num_blocks; ++b) {
    Block block;
    std::memcpy(&block, bytes.data() + b * sizeof(Block), sizeof(Block));
    DequantizeBlock(block, out + b * kBlockElements);
  }
}

template <typename Convert>
void ConvertEach16(std::span<const std::byte> bytes, std::span<float> out, Convert convert) {
  const std::byte* in = bytes.data();
  for (size_t i = 0; i < out.size(); ++i) {
    uint16_t bits;
    std::memcpy(&bits, in + 2 * i, sizeof(bits));
    out[i] = convert(bits);
  }
}

}  // namespace

void Dequantize(StorageType type, std::span<const std::byte> bytes, std::span<float> out) {
  const StorageBlock block = BlockOf(type);
  QUIRE_CHECK_EQ(static_cast<int64_t>(out.size()) % block.num_elements, 0);
  QUIRE_CHECK_EQ(static_cast<int64_t>(bytes.size()),
                 static_cast<int64_t>(out.size()) / block.num_elements * block.num_bytes);
  if (out.empty()) return;
  switch (type) {
    case StorageType::kF32: std::memcpy(out.data(), bytes.data(), bytes.size()); return;
    case StorageType::kF16: ConvertEach16(bytes, out, HalfToFloat); return;
    case StorageType::kBF16:
      ConvertEach16(bytes, out, [](uint16_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits) << 16); });
      return;
    case StorageType::kQ8_0: DequantizeBlocks<BlockQ8_0>(bytes, out.data()); return;
    case StorageType::kQ4_0: DequantizeBlocks<BlockQ4_0>(bytes, out.data()); return;
    case StorageType::kQ4_1: DequantizeBlocks<BlockQ4_1>(bytes, out.data()); return;
  }
}

void UnpackQuants(StorageType type, std::span<const std::byte> bytes, uint8_t* quants, uint16_t* scales,
                  uint16_t* minima) {
  switch (type) {
    case StorageType::kQ8_0: UnpackBlocks<BlockQ8_0>(bytes, quants, scales, minima); return;
    case StorageType::kQ4_0: UnpackBlocks<BlockQ4_0>(bytes, quants, scales, minima); return;
    case StorageType::kQ4_1: UnpackBlocks<BlockQ4_1>(bytes, quants, scales, minima); return;
    default: QUIRE_CHECK(false);
  }
}

}  // namespace quire
