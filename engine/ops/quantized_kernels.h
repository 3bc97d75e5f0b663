#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/ops/quantize.h"
#include "engine/ops/weight_panel.h"

namespace quire {

// C [rows, num_panels * kPanelWidth] (+)= A [rows, k] x panels of a quantized type, from A as QuantizeGroups makes it.
// The products of a group are summed exactly, in integers; the sums of groups, times both scales, are added up in f32
// in order of k. So the bits of a row's result do not depend on how many rows are computed with it.
struct QuantizedMultiplyArgs {
  WeightPanel panel;
  const std::byte* panels = nullptr;  // they follow each other
  int64_t num_panels = 0;
  QuantizedRows a;  // [rows, panel.k]
  int64_t rows = 0;
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
};

// Vector code for any processor and number of rows, on the calling thread alone.
void MultiplyQuantizedPanels(const QuantizedMultiplyArgs& args);

}  // namespace quire
