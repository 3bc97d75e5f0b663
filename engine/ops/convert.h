#pragma once

#include <cstdint>

#include "engine/tensor/dtype.h"

namespace quire {

// out[i] = values[i] rounded to nearest even, for i in [0, count).
void ConvertToBFloat16(const float* values, int64_t count, BFloat16* out);

// Splits each values[i] * factor in two: high[i] cuts it off at bf16's bits, low[i] is the rest rounded to nearest.
// Together they keep 16 of f32's 24 significant bits.
void SplitIntoBFloat16(const float* values, float factor, int64_t count, BFloat16* high, BFloat16* low);

// Turns a bf16 matrix packed in pairs of rows, [rows / 2, cols, 2], into f32 rows with stride out_stride; rows is even.
void ExpandBFloat16Pairs(const BFloat16* packed, int64_t rows, int64_t cols, float* out, int64_t out_stride);

// The scale of a row that is kept as int8, max |values| / 127, so that each element stands for itself times the scale:
// 0 if all are zero or too small for 1 / scale, NaN if one is not finite.
float Int8ScaleOf(const float* values, int64_t count);

// out[i] = values[i] / scale rounded to nearest, for i in [0, count); zeros if the scale is 0.
void ConvertToInt8(const float* values, float scale, int64_t count, int8_t* out);

// Turns an int8 matrix [rows, cols] into f32 rows with stride out_stride.
void ExpandInt8(const int8_t* values, int64_t rows, int64_t cols, float* out, int64_t out_stride);

// Turns an int8 matrix [rows, cols] into bf16, exactly, packed in pairs of rows: [rows / 2, out_stride, 2]; rows is
// even.
void PackInt8Pairs(const int8_t* values, int64_t rows, int64_t cols, BFloat16* out, int64_t out_stride);

}  // namespace quire
