#include "engine/ops/rms_norm.h"

#include <cmath>

#include "engine/ops/row_kernels.h"

namespace quire {

namespace {

void NormalizeRow(std::span<const float> x, const float* weight, float epsilon, int64_t out_row,
                  std::span<std::byte> scratch, const Activation& out) {
  const auto width = static_cast<int64_t>(x.size());
  const std::span<float> y(reinterpret_cast<float*>(scratch.data()), x.size());
  const float mean_square = SumOfSquares(x.data(), width) / static_cast<float>(width);
  ScaleByWeights(x.data(), 1.0F / std::sqrt(mean_square + epsilon), weight, width, y.data());
  out.Write(out_row, 0, y);
}

}  // namespace

int64_t RmsNormScratchBytes(int64_t width) { return width * static_cast<int64_t>(sizeof(float)); }

void RmsNorm(Worker& worker, MatrixView<const float> x, const float* weight, float epsilon, const Activation& out) {
  worker.For(x.rows, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      NormalizeRow(x.row(row), weight, epsilon, row, worker.scratch(), out);
    }
  });
}

void RmsNormRows(Worker& worker, MatrixView<const float> x, std::span<const int64_t> rows, const float* weight,
                 float epsilon, const Activation& out) {
  worker.For(static_cast<int64_t>(rows.size()), [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      NormalizeRow(x.row(rows[row]), weight, epsilon, row, worker.scratch(), out);
    }
  });
}

}  // namespace quire
