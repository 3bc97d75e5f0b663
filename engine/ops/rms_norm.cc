#include "engine/ops/rms_norm.h"

#include <cmath>

#include "engine/ops/row_kernels.h"

namespace quire {

namespace {

void NormalizeRow(std::span<const float> x, const float* weight, float epsilon, int64_t out_row, float* y,
                  const Activation& out) {
  const auto width = static_cast<int64_t>(x.size());
  const float mean_square = SumOfSquares(x.data(), width) / static_cast<float>(width);
  ScaleByWeights(x.data(), 1.0F / std::sqrt(mean_square + epsilon), weight, width, y);
  out.FinishRow(out_row);
}

}  // namespace

void RmsNorm(Worker& worker, MatrixView<const float> x, const float* weight, float epsilon, const Activation& out) {
  const MatrixView<float> y = out.f32(x.rows);
  worker.For(x.rows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      NormalizeRow(x.row(row), weight, epsilon, row, y.row_data(row), out);
    }
  });
}

void RmsNormRows(Worker& worker, MatrixView<const float> x, std::span<const int64_t> rows, const float* weight,
                 float epsilon, const Activation& out) {
  const auto num_rows = static_cast<int64_t>(rows.size());
  const MatrixView<float> y = out.f32(num_rows);
  worker.For(num_rows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      NormalizeRow(x.row(rows[row]), weight, epsilon, row, y.row_data(row), out);
    }
  });
}

}  // namespace quire
