#pragma once

#include <array>
#include <cstdint>
#include <span>

#include "engine/ops/linear_kernels.h"
#include "engine/ops/parallel.h"
#include "engine/ops/quantize.h"
#include "engine/tensor/buffer.h"
#include "engine/tensor/dtype.h"
#include "engine/tensor/tensor_view.h"

namespace quire {

// The input of linear layers, in the forms that the layers' kernels read, made once and shared by all of them.
class Activation {
 public:
  // At most `max_rows` rows of `width`, with memory for the forms `available`; whole groups for int8. Without readers,
  // rows are kept in f32.
  Activation(int64_t max_rows, int64_t width, InputForms available);
  static int64_t BytesFor(int64_t max_rows, int64_t width, InputForms available);

  // As TouchPages.
  void Touch(Worker& worker) const;

  int64_t width() const { return width_; }
  int64_t max_rows() const { return max_rows_; }

  InputForms available() const { return available_; }

  // A linear layer will read it, in the forms that its kernels choose now.
  void AddReader(const LinearKernels& kernels);
  // The next step has so many rows: Write makes the forms that the readers want then. Outside a parallel region.
  void SetRows(int64_t rows) { forms_ = forms_by_rows_[RowBucketOf(rows)]; }

  // The first `rows` rows; only if f32 is among the forms.
  MatrixView<float> f32(int64_t rows) const { return {f32_.as<float>(), rows, width_}; }
  // Rows as bfloat16; only if bf16 is among the forms. // [max_rows, width]
  const BFloat16* bf16_row(int64_t row) const { return bf16_.as<BFloat16>() + row * width_; }
  // Rows from `row` on as quants; only if int8 is among the forms.
  QuantizedRows int8_rows(int64_t row) const { return At(row, 0); }

  // Sets columns [begin, begin + values.size()) of a row; whole groups if int8 is among the forms.
  void Write(int64_t row, int64_t begin, std::span<const float> values) const;

 private:
  QuantizedRows At(int64_t row, int64_t column) const;

  int64_t max_rows_;
  int64_t width_;
  InputForms available_;
  bool has_readers_ = false;
  std::array<InputForms, kRowBuckets.size()> forms_by_rows_;
  InputForms forms_;    // of the next step
  Buffer f32_;          // [max_rows, width]
  Buffer bf16_;         // [max_rows, width]
  Buffer quants_;       // [max_rows, width]
  Buffer scales_;       // [max_rows, width / kGroupSize]
  Buffer sums_;         // [max_rows, width / kGroupSize]
  Buffer scaled_sums_;  // [max_rows, width / kGroupSize]
};

}  // namespace quire
