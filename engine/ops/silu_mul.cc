#include "engine/ops/silu_mul.h"

#include <algorithm>

#include "engine/base/math.h"
#include "engine/ops/row_kernels.h"

namespace quire {

void SiluMul(Worker& worker, MatrixView<const float> gate_up, const Activation& out) {
  constexpr int64_t kColumnsPerItem = 512;
  const int64_t width = out.width();
  const int64_t parts = CeilDiv(width, kColumnsPerItem);
  const MatrixView<float> y = out.f32(gate_up.rows);
  worker.For(gate_up.rows * parts, [&](int64_t begin, int64_t end) {
    for (int64_t item = begin; item < end; ++item) {
      const int64_t row = item / parts;
      const int64_t first = item % parts * kColumnsPerItem;
      const int64_t last = std::min(first + kColumnsPerItem, width);
      const float* gate = gate_up.row_data(row);
      SiluMulColumns(gate + first, gate + width + first, last - first, y.row_data(row) + first);
      out.FinishColumns(row, first, last);
    }
  });
}

}  // namespace quire
