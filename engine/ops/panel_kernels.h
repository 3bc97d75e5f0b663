#pragma once

#include <cstdint>

#include "engine/ops/weight_panel.h"
#include "engine/tensor/dtype.h"

namespace quire {

// C [rows, num_panels * kPanelWidth] (+)= A [rows, k] x panels. Each panel is [k, kPanelWidth] in f32, or
// [k / 2, kPanelWidth, 2] in bf16; panels follow each other. Sums in f32, in order of k, by fused multiply-adds.
struct PanelMultiplyArgs {
  const void* panels = nullptr;
  DType panel_type = DType::kF32;
  int64_t num_panels = 0;
  int64_t k = 0;
  const float* a = nullptr;
  int64_t lda = 0;
  int64_t rows = 0;
  float* c = nullptr;
  int64_t ldc = 0;
  bool accumulate = false;
};

// Vector code for any processor, made for few rows: it streams the panels once for up to four rows. On the calling
// thread alone.
void MultiplyPanels(const PanelMultiplyArgs& args);

}  // namespace quire
