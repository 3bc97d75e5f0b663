#pragma once

#include <cstdint>
#include <span>

#include "engine/base/check.h"

namespace quire {

// Rows of a row-major matrix owned by somebody else: pointer, extents, and the distance between rows in elements.
template <typename T>
struct MatrixView {
  T* data = nullptr;
  int64_t rows = 0;
  int64_t cols = 0;
  int64_t row_stride = 0;  // >= cols

  MatrixView() = default;
  MatrixView(T* data, int64_t rows, int64_t cols) : MatrixView(data, rows, cols, cols) {}
  MatrixView(T* data, int64_t rows, int64_t cols, int64_t row_stride)
      : data(data), rows(rows), cols(cols), row_stride(row_stride) {}
  // A view that may write can be read.
  operator MatrixView<const T>() const { return {data, rows, cols, row_stride}; }

  T* row_data(int64_t row) const {
    QUIRE_DCHECK(row >= 0 && row < rows);
    return data + row * row_stride;
  }
  std::span<T> row(int64_t row) const { return {row_data(row), static_cast<size_t>(cols)}; }
  // Rows [begin, end).
  MatrixView row_range(int64_t begin, int64_t end) const {
    return {data + begin * row_stride, end - begin, cols, row_stride};
  }
};

}  // namespace quire
