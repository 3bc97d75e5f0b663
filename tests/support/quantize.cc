#include "tests/support/quantize.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace quire::testing {
namespace {

constexpr size_t kBlockElements = 32;

template <typename T>
void Append(std::vector<std::byte>& bytes, T value) {
  const size_t end = bytes.size();
  bytes.resize(end + sizeof(T));
  std::memcpy(bytes.data() + end, &value, sizeof(T));
}

uint16_t HalfBits(float value) { return std::bit_cast<uint16_t>(static_cast<_Float16>(value)); }
float HalfValue(float value) { return static_cast<float>(static_cast<_Float16>(value)); }

uint16_t BFloat16Bits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if (std::isnan(value)) return static_cast<uint16_t>((bits >> 16) | 0x40U);
  const uint32_t kept = bits & 0xffff0000U;
  const uint32_t cut = bits - kept;
  const bool up = cut > 0x8000U || (cut == 0x8000U && (kept & 0x10000U) != 0);  // ties to even
  return static_cast<uint16_t>((kept >> 16) + (up ? 1U : 0U));
}

// round((value - offset) / scale) within [low, high]; 0 if the scale is 0.
int Code(float value, float offset, float scale, int low, int high) {
  if (scale == 0.0F) return std::clamp(0, low, high);
  return std::clamp(static_cast<int>(std::lround((value - offset) / scale)), low, high);
}

// Element i in the low nibble of byte i, element i + 16 in the high one.
void AppendNibbles(std::vector<std::byte>& bytes, std::span<const float> block, float offset, float scale) {
  for (size_t i = 0; i < kBlockElements / 2; ++i) {
    const int low = Code(block[i], offset, scale, 0, 15);
    const int high = Code(block[i + kBlockElements / 2], offset, scale, 0, 15);
    Append(bytes, static_cast<uint8_t>(low | (high << 4)));
  }
}

void AppendQ8_0(std::vector<std::byte>& bytes, std::span<const float> block) {
  float largest = 0;
  for (const float value : block) largest = std::max(largest, std::abs(value));
  const float scale = HalfValue(largest / 127);
  Append(bytes, HalfBits(scale));
  for (const float value : block) Append(bytes, static_cast<int8_t>(Code(value, 0, scale, -127, 127)));
}

void AppendQ4_0(std::vector<std::byte>& bytes, std::span<const float> block) {
  float extreme = 0;  // of the largest magnitude, with its sign: it becomes code 0, the value -8 * scale
  for (const float value : block) extreme = std::abs(value) > std::abs(extreme) ? value : extreme;
  const float scale = HalfValue(extreme / -8);
  Append(bytes, HalfBits(scale));
  AppendNibbles(bytes, block, -8 * scale, scale);
}

void AppendQ4_1(std::vector<std::byte>& bytes, std::span<const float> block) {
  const auto [smallest, largest] = std::minmax_element(block.begin(), block.end());
  const float minimum = HalfValue(*smallest);
  const float scale = HalfValue((*largest - *smallest) / 15);
  Append(bytes, HalfBits(scale));
  Append(bytes, HalfBits(minimum));
  AppendNibbles(bytes, block, minimum, scale);
}

}  // namespace

std::vector<std::byte> Quantize(StorageType type, std::span<const float> values) {
  std::vector<std::byte> bytes;
  const auto block_elements = static_cast<size_t>(BlockOf(type).num_elements);
  if (values.size() % block_elements != 0) throw std::invalid_argument("Quantize: not whole blocks");
  for (size_t begin = 0; begin < values.size(); begin += block_elements) {
    const std::span<const float> block = values.subspan(begin, block_elements);
    switch (type) {
      case StorageType::kF32: Append(bytes, block[0]); break;
      case StorageType::kF16: Append(bytes, HalfBits(block[0])); break;
      case StorageType::kBF16: Append(bytes, BFloat16Bits(block[0])); break;
      case StorageType::kQ8_0: AppendQ8_0(bytes, block); break;
      case StorageType::kQ4_0: AppendQ4_0(bytes, block); break;
      case StorageType::kQ4_1: AppendQ4_1(bytes, block); break;
    }
  }
  return bytes;
}

}  // namespace quire::testing
