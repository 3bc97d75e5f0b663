#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tensor/dtype.h"

namespace quire {

// Vector code for one key tile of attention, on the calling thread alone. Sums run in order (over head_dim for scores,
// over tokens for outputs) by fused multiply-adds, as oneDNN's f32 micro-kernels do, so that both give the same bits.

// A run of cache blocks of one kv head: tiles[i] is the i-th block's key or value tile (kv_layout.h).
struct TileRun {
  const std::byte* const* tiles = nullptr;
  int64_t num_blocks = 0;
  int64_t block_size = 0;
  int64_t head_dim = 0;
  DType dtype = DType::kF32;
};

// scores [rows, num_blocks * block_size] = queries [rows, head_dim] x keys, row stride scores_stride.
void MultiplyKeys(const TileRun& keys, const float* queries, int64_t rows, float* scores, int64_t scores_stride);

// out [rows, head_dim] = sum over the first num_tokens tokens of weights [rows, num_tokens] x values.
void MultiplyValues(const TileRun& values, const float* weights, int64_t weights_stride, int64_t rows,
                    int64_t num_tokens, float* out);

struct SoftmaxStats {
  float max = 0;  // of the scores
  float sum = 0;  // of exp(score - max)
};

// Turns scores [0, num_valid) into exp(score - max) and sets [num_valid, count) to zero; num_valid >= 1.
SoftmaxStats ExpScores(float* scores, int64_t num_valid, int64_t count);

// out[i] = out[i] * out_factor + x[i] * x_factor.
void ScaleAdd(float* out, float out_factor, const float* x, float x_factor, int64_t count);

// out[i] = x[i] * factor.
void Scale(const float* x, float factor, int64_t count, float* out);

}  // namespace quire
