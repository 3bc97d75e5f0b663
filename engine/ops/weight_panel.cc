#include "engine/ops/weight_panel.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "engine/base/check.h"
#include "engine/tensor/dtype.h"

namespace quire {
namespace {

// Where the quant of input `k` and output feature `column` lies.
struct QuantPlace {
  int64_t byte;
  int shift;  // 4 for the upper half of a byte

  QuantPlace(const WeightPanel& shape, int64_t k, int64_t column) {
    const int64_t in_group = k % kGroupSize;
    const bool upper = HasNibbles(shape.type) && in_group >= kGroupSize / 2;
    const int64_t row = upper ? in_group - kGroupSize / 2 : in_group;
    byte = k / kGroupSize * shape.BytesPerGroup() + (row / 4 * kPanelWidth + column) * 4 + row % 4;
    shift = upper ? 4 : 0;
  }
};

void PackInt8Row(const WeightPanel& shape, std::span<const float> row, int64_t column, std::byte* panel) {
  float largest = 0;
  for (const float value : row) largest = std::max(largest, std::abs(value));
  const float scale = largest / 127.0F;
  const float inverse = largest > 0 ? 127.0F / largest : 0.0F;
  reinterpret_cast<float*>(panel + shape.ChannelScalesOffset())[column] = scale;
  for (int64_t k = 0; k < shape.k; ++k) {
    const auto quant = static_cast<int>(std::lrint(row[k] * inverse));
    panel[QuantPlace(shape, k, column).byte] = static_cast<std::byte>(quant + ZeroPoint(WeightType::kInt8));
  }
}

float HalfToFloat(uint16_t half) {
  _Float16 value;
  std::memcpy(&value, &half, sizeof(value));
  return static_cast<float>(value);
}

struct ScaleAndMinimum {
  float scale;
  float minimum;
};

ScaleAndMinimum ScaleOf(const WeightPanel& shape, const std::byte* panel, int64_t group, int64_t column) {
  if (shape.type == WeightType::kInt8) {
    return {reinterpret_cast<const float*>(panel + shape.ChannelScalesOffset())[column], 0.0F};
  }
  const auto* scales = reinterpret_cast<const uint16_t*>(panel + shape.GroupScalesOffset(group));
  return {HalfToFloat(scales[column]),
          shape.type == WeightType::kQ4_1 ? HalfToFloat(scales[kPanelWidth + column]) : 0.0F};
}

}  // namespace

int64_t WeightPanel::bytes() const {
  switch (type) {
    case WeightType::kF32: return k * kPanelWidth * SizeOf(DType::kF32);
    case WeightType::kBF16: return k * kPanelWidth * SizeOf(DType::kBF16);
    case WeightType::kInt8: return k * kPanelWidth + kPanelWidth * SizeOf(DType::kF32);
    default: return num_groups() * BytesPerGroup();
  }
}

void PackRows(const WeightPanel& shape, MatrixView<const float> rows, std::byte* panel) {
  QUIRE_CHECK_LE(rows.rows, kPanelWidth);
  QUIRE_CHECK_EQ(rows.cols, shape.k);
  QUIRE_CHECK(!IsGrouped(shape.type));
  for (int64_t column = 0; column < rows.rows; ++column) {
    const float* row = rows.row_data(column);
    if (shape.type == WeightType::kInt8) {
      PackInt8Row(shape, rows.row(column), column, panel);
    } else if (shape.type == WeightType::kF32) {
      auto* out = reinterpret_cast<float*>(panel) + column;
      for (int64_t k = 0; k < shape.k; ++k) out[k * kPanelWidth] = row[k];
    } else {
      auto* out = reinterpret_cast<BFloat16*>(panel) + 2 * column;
      for (int64_t k = 0; k < shape.k; ++k) out[(k / 2) * 2 * kPanelWidth + k % 2] = ToBFloat16(row[k]);
    }
  }
}

void PackQuants(const WeightPanel& shape, const QuantRows& rows, std::byte* panel) {
  QUIRE_CHECK_LE(rows.rows, kPanelWidth);
  QUIRE_CHECK_EQ(rows.cols, shape.k);
  QUIRE_CHECK(IsGrouped(shape.type));
  for (int64_t column = 0; column < rows.rows; ++column) {
    const uint8_t* quants = rows.quants + column * shape.k;
    for (int64_t k = 0; k < shape.k; ++k) {
      const QuantPlace place(shape, k, column);
      panel[place.byte] |= static_cast<std::byte>(quants[k] << place.shift);
    }
    for (int64_t group = 0; group < shape.num_groups(); ++group) {
      auto* scales = reinterpret_cast<uint16_t*>(panel + shape.GroupScalesOffset(group));
      scales[column] = rows.scales[column * shape.num_groups() + group];
      if (shape.type == WeightType::kQ4_1) {
        scales[kPanelWidth + column] = rows.minima[column * shape.num_groups() + group];
      }
    }
  }
}

void UnpackColumn(const WeightPanel& shape, const std::byte* panel, int64_t column, std::span<float> out) {
  QUIRE_DCHECK(static_cast<int64_t>(out.size()) == shape.k);
  if (shape.type == WeightType::kF32) {
    const auto* values = reinterpret_cast<const float*>(panel) + column;
    for (int64_t k = 0; k < shape.k; ++k) out[k] = values[k * kPanelWidth];
    return;
  }
  if (shape.type == WeightType::kBF16) {
    const auto* values = reinterpret_cast<const BFloat16*>(panel) + 2 * column;
    for (int64_t k = 0; k < shape.k; ++k) out[k] = ToFloat(values[(k / 2) * 2 * kPanelWidth + k % 2]);
    return;
  }
  const bool nibbles = HasNibbles(shape.type);
  const int mask = nibbles ? 0x0f : 0xff;
  const int zero_point = ZeroPoint(shape.type);
  for (int64_t group = 0; group < shape.num_groups(); ++group) {
    const auto [scale, minimum] = ScaleOf(shape, panel, group, column);
    const std::byte* quants = panel + group * shape.BytesPerGroup() + column * 4;
    float* values = out.data() + group * kGroupSize;
    for (int64_t i = 0; i < kGroupSize; ++i) {
      const bool upper = nibbles && i >= kGroupSize / 2;
      const int64_t row = upper ? i - kGroupSize / 2 : i;
      const int byte = static_cast<int>(quants[row / 4 * kPanelWidth * 4 + row % 4]);
      values[i] = scale * static_cast<float>(((upper ? byte >> 4 : byte) & mask) - zero_point) + minimum;
    }
  }
}

}  // namespace quire
