#pragma once

#include <cstddef>

#include "engine/ops/weight_panel.h"
#include "engine/tensor/dtype.h"

namespace quire {

// A panel of any type but f32 in the form that f32 micro-kernels read: [k, kPanelWidth] floats.
void ExpandPanelToF32(const WeightPanel& shape, const std::byte* panel, float* out);

// A panel of a quantized type in the form that bf16 micro-kernels read: [k / 2, kPanelWidth, 2], rounded to nearest.
void ExpandPanelToBf16(const WeightPanel& shape, const std::byte* panel, BFloat16* out);

}  // namespace quire
