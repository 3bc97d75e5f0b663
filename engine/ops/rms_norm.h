#pragma once

#include <cstdint>
#include <span>

#include "engine/ops/activation.h"
#include "engine/ops/parallel.h"
#include "engine/tensor/tensor_view.h"

namespace quire {

// out[i] = x[i] / sqrt(mean(x^2) + epsilon) * weight[i], row by row, for x [rows, width] and weight [width]; writes
// the activation's rows. Source: Zhang and Sennrich, "Root Mean Square Layer Normalization", 2019.
void RmsNorm(Worker& worker, MatrixView<const float> x, const float* weight, float epsilon, const Activation& out);

// The same for chosen rows of x: out's row i is made from x's row rows[i].
void RmsNormRows(Worker& worker, MatrixView<const float> x, std::span<const int64_t> rows, const float* weight,
                 float epsilon, const Activation& out);

// Each worker's scratch that both need.
int64_t RmsNormScratchBytes(int64_t width);

}  // namespace quire
