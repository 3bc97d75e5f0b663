#pragma once

#include <cstdint>

#include "engine/ops/parallel.h"
#include "engine/tensor/buffer.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/tensor_view.h"

namespace quire {

// The input of linear layers: rows of f32, and beside them the form that the linears' kernels compute in, made once and
// shared by all of them. Whoever writes rows of f32() calls FinishRow for each, or FinishColumns for a part.
class Activation {
 public:
  // At most `max_rows` rows of `width`; `compute_type` is what the linears that read it compute in.
  Activation(int64_t max_rows, int64_t width, DType compute_type);
  static int64_t BytesFor(int64_t max_rows, int64_t width, DType compute_type);

  // As TouchPages.
  void Touch(Worker& worker) const;

  int64_t width() const { return width_; }
  DType compute_type() const { return compute_type_; }

  // The first `rows` rows.
  MatrixView<float> f32(int64_t rows) const { return {f32_.as<float>(), rows, width_}; }
  // Rows as bfloat16; only where compute_type is bf16. // [max_rows, width]
  const BFloat16* bf16_row(int64_t row) const { return bf16_.as<BFloat16>() + row * width_; }

  // Makes the other form of columns [begin, end) of a row whose f32 form is written.
  void FinishColumns(int64_t row, int64_t begin, int64_t end) const;
  void FinishRow(int64_t row) const { FinishColumns(row, 0, width_); }

 private:
  int64_t width_;
  DType compute_type_;
  Buffer f32_;   // [max_rows, width]
  Buffer bf16_;  // [max_rows, width], empty if compute_type is f32
};

}  // namespace quire
