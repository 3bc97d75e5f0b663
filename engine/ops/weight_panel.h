#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/ops/weight_type.h"
#include "engine/tensor/tensor_view.h"

namespace quire {

// Linear layers' weights are packed in panels of this many output features, one linear stream of memory each.
inline constexpr int64_t kPanelWidth = 32;

// A panel's layout, k inputs by kPanelWidth output features:
//   f32   [k, kPanelWidth]
//   bf16  [k / 2, kPanelWidth, 2]
//   int8  [k / 4, kPanelWidth, 4] quants + 128, then kPanelWidth f32 scales
//   grouped, for each group: quants, kPanelWidth f16 scales, for Q4_1 kPanelWidth f16 minima; the quants are
//     Q8_0  [kGroupSize / 4, kPanelWidth, 4] bytes q + 128
//     Q4    [kGroupSize / 8, kPanelWidth, 4] bytes with the quants of inputs i and i + kGroupSize / 2 in their halves
// Four inputs side by side are what integer dot products of bytes add up.
struct WeightPanel {
  WeightType type = WeightType::kF32;
  int64_t k = 0;  // even; whole groups if quantized

  int64_t num_groups() const { return k / kGroupSize; }
  // Of the quants of a group.
  int64_t QuantBytesPerGroup() const { return kGroupSize * kPanelWidth / (HasNibbles(type) ? 2 : 1); }
  // From the quants of a group to those of the next.
  int64_t BytesPerGroup() const {
    constexpr int64_t kHalves = kPanelWidth * 2;
    if (type == WeightType::kInt8) return QuantBytesPerGroup();
    return QuantBytesPerGroup() + (type == WeightType::kQ4_1 ? 2 * kHalves : kHalves);
  }
  // Byte offsets of a group's scales, and of the scales of all output features of an int8 panel.
  int64_t GroupScalesOffset(int64_t group) const { return group * BytesPerGroup() + QuantBytesPerGroup(); }
  int64_t ChannelScalesOffset() const { return num_groups() * BytesPerGroup(); }
  int64_t bytes() const;
};

// Rows of grouped weights as a file has them, one for each output feature.
struct QuantRows {
  int64_t rows = 0;
  int64_t cols = 0;                  // inputs, whole groups
  const uint8_t* quants = nullptr;   // [rows, cols]; q + 128 for Q8_0, else q
  const uint16_t* scales = nullptr;  // [rows, cols / kGroupSize], half precision
  const uint16_t* minima = nullptr;  // the same; for Q4_1
};

// Fills a zeroed panel with at most kPanelWidth rows, rounding to a type that is not grouped.
void PackRows(const WeightPanel& shape, MatrixView<const float> rows, std::byte* panel);
// The same for a grouped type, bit for bit.
void PackQuants(const WeightPanel& shape, const QuantRows& rows, std::byte* panel);

// Output feature `column` of a panel as floats. // [k]
void UnpackColumn(const WeightPanel& shape, const std::byte* panel, int64_t column, std::span<float> out);

}  // namespace quire
