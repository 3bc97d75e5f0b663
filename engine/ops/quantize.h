#pragma once

#include <cstdint>

namespace quire {

// Rows of values as 8-bit quants with a scale for each group of kGroupSize: value = scale * quant. Sums of a group's
// quants serve weights whose quants do not mean 0 by 0.
struct QuantizedRows {
  int8_t* quants = nullptr;      // [rows, width], in [-127, 127]
  float* scales = nullptr;       // [rows, width / kGroupSize]
  int32_t* sums = nullptr;       // [rows, width / kGroupSize], of quants
  float* scaled_sums = nullptr;  // [rows, width / kGroupSize], scale * sum
};

// Quantizes `count` values, whole groups, of one row: the greatest magnitude of a group becomes 127, others are rounded
// to nearest even. `out` points at the row's part.
void QuantizeGroups(const float* values, int64_t count, const QuantizedRows& out);

}  // namespace quire
