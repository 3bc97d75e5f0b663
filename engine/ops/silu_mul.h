#pragma once

#include "engine/ops/activation.h"
#include "engine/ops/parallel.h"
#include "engine/tensor/tensor_view.h"

namespace quire {

// out[i] = silu(gate[i]) * up[i] with silu(x) = x / (1 + exp(-x)), for gate_up [rows, 2 * width] whose first half is
// gate; finishes the activation's rows. Source: Shazeer, "GLU Variants Improve Transformer", 2020.
void SiluMul(Worker& worker, MatrixView<const float> gate_up, const Activation& out);

}  // namespace quire
