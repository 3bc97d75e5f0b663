#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

namespace quire {

// Element types of quire's own buffers. How files store tensors is checkpoint.h's StorageType.
enum class DType { kF32, kBF16, kInt8 };

constexpr int64_t SizeOf(DType dtype) {
  switch (dtype) {
    case DType::kF32: return 4;
    case DType::kBF16: return 2;
    case DType::kInt8: return 1;
  }
  return 0;
}

constexpr std::string_view ToString(DType dtype) {
  switch (dtype) {
    case DType::kF32: return "f32";
    case DType::kBF16: return "bf16";
    case DType::kInt8: return "int8";
  }
  return "";
}

// bfloat16: the upper half of an IEEE-754 binary32.
struct BFloat16 {
  uint16_t bits;
};

constexpr float ToFloat(BFloat16 value) { return std::bit_cast<float>(static_cast<uint32_t>(value.bits) << 16); }

// Rounds to nearest, ties to even; a NaN stays a NaN.
constexpr BFloat16 ToBFloat16(float value) {
  const auto bits = std::bit_cast<uint32_t>(value);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return {static_cast<uint16_t>((bits >> 16) | 0x40U)};
  return {static_cast<uint16_t>((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16)};
}

}  // namespace quire
