#pragma once

#include <cstddef>
#include <cstdint>

#include "engine/tensor/dtype.h"

namespace quire {

// Vector code for a few rows by one key tile of attention, on the calling thread alone. It reads the cache as it lies
// (kv_layout.h). Sums run in order (over head_dim for scores, over tokens for outputs) by fused multiply-adds, as
// oneDNN's f32 micro-kernels do, so that both give the same bits.

// A run of cache blocks of one kv head.
struct TileRun {
  const std::byte* const* tiles = nullptr;  // key or value tiles // [num_blocks]
  // What will be read next, fetched into the cache meanwhile, or `tiles` again. // [num_blocks]
  const std::byte* const* next_tiles = nullptr;
  int64_t num_blocks = 0;
  int64_t block_size = 0;
  int64_t head_dim = 0;
  DType dtype = DType::kF32;
};

// scores [rows, num_blocks * block_size] = queries [rows, head_dim] x keys, row stride scores_stride. An int8 cache's
// scores are yet to be multiplied by their keys' scales.
void MultiplyKeys(const TileRun& keys, const float* queries, int64_t rows, float* scores, int64_t scores_stride);

// out [rows, head_dim] = sum over the first num_tokens tokens of weights [rows, num_tokens] x values. With an int8
// cache, the values' scales are in the weights.
void MultiplyValues(const TileRun& values, const float* weights, int64_t weights_stride, int64_t rows,
                    int64_t num_tokens, float* out);

}  // namespace quire
