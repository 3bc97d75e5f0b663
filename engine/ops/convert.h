#pragma once

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace quire {

// out[i] = values[i] rounded to nearest even, for i in [0, count).
void ConvertToBFloat16(const float* values, int64_t count, BFloat16* out);

// Turns a bf16 matrix packed in pairs of rows, [rows / 2, cols, 2], into f32 rows with stride out_stride; rows is even.
void ExpandBFloat16Pairs(const BFloat16* packed, int64_t rows, int64_t cols, float* out, int64_t out_stride);

// The scale of a row that is kept as int8, max |values| / 127, so that each element stands for itself times the scale:
// 0 if all are zero or too small for 1 / scale, NaN if one is not finite.
float Int8ScaleOf(const float* values, int64_t count);

// out[i] = values[i] / scale rounded to nearest, for i in [0, count); zeros if the scale is 0.
void ConvertToInt8(const float* values, float scale, int64_t count, int8_t* out);

// Turns an int8 matrix [rows, cols] into f32 rows with stride out_stride.
void ExpandInt8(const int8_t* values, int64_t rows, int64_t cols, float* out, int64_t out_stride);

}  // namespace quire
