#pragma once

#include <cstdint>
#include <string_view>

namespace quire {

// How a linear layer's weights are stored. Grouped types keep what GGUF's types of the same name hold, bit for bit: per
// output feature and group of kGroupSize inputs a half-precision scale d (and, in Q4_1, a minimum m) and a quant q for
// each input. Weights are
//   Q8_0: d * q with q in [-128, 127]; Q4_0: d * (q - 8), Q4_1: d * q + m, both with q in [0, 15]
//   int8: s * q with one f32 scale s for each output feature and q in [-127, 127]
enum class WeightType { kF32, kBF16, kInt8, kQ8_0, kQ4_0, kQ4_1 };

inline constexpr int64_t kGroupSize = 32;

constexpr bool IsGrouped(WeightType type) {
  return type == WeightType::kQ8_0 || type == WeightType::kQ4_0 || type == WeightType::kQ4_1;
}
constexpr bool IsQuantized(WeightType type) { return IsGrouped(type) || type == WeightType::kInt8; }
constexpr bool HasNibbles(WeightType type) { return type == WeightType::kQ4_0 || type == WeightType::kQ4_1; }

// The stored quant that means 0, where quants are stored as bytes or nibbles without a sign.
constexpr int32_t ZeroPoint(WeightType type) {
  if (type == WeightType::kQ4_1) return 0;
  return type == WeightType::kQ4_0 ? 8 : 128;
}

constexpr std::string_view ToString(WeightType type) {
  switch (type) {
    case WeightType::kF32: return "f32";
    case WeightType::kBF16: return "bf16";
    case WeightType::kInt8: return "int8";
    case WeightType::kQ8_0: return "q8_0";
    case WeightType::kQ4_0: return "q4_0";
    case WeightType::kQ4_1: return "q4_1";
  }
  return "";
}

}  // namespace quire
