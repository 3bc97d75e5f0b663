#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/ops/brgemm.h"
#include "engine/ops/kv_tiles.h"
#include "engine/tensor/dtype.h"

namespace quire {

// Attention's two matmuls for many rows by one key tile, by oneDNN's micro-kernels on the calling thread alone.
//
// In f32, an element of a result is one chain of fused multiply-adds in order, as in attention_kernels, and so the same
// bits. In bf16, for processors with matrix units, keys and values are what a bf16 or int8 cache holds, and each query
// and weight is the sum of two bf16 numbers, itself rounded and the rest rounded: 16 bits of f32's 24, for twice the
// multiplications. Sums run in f32, in the processor's order.
class TileMatmuls {
 public:
  static constexpr int64_t kKeyTile = KvTiles::kKeyTile;
  // Tokens of a tile are taken in multiples of this; the rest is padding that no row sees.
  static constexpr int64_t kKeyStep = 32;
  // Rows whose scores are made, turned into weights and used before the next rows' are, so that they stay in the
  // first-level cache.
  static constexpr int64_t kRowBlock = 32;

  // A worker's memory. Sizes are in bytes for f32, which bf16 halves or fills with its pairs of numbers.
  struct Scratch {
    std::byte* queries;  // of an item's rows, scaled // [rows, head_dim]
    std::byte* keys;     // [head_dim, kKeyStride]
    std::byte* values;   // [kKeyTile, head_dim]
    std::byte* weights;  // bf16's alone // [kRowBlock, kKeyTile]
    std::byte* brgemm;   // [Brgemm::kScratchBytes]
  };
  // Row stride of a key tile as one matrix: not a power of two, so that rows do not share the same few sets of the
  // cache.
  static constexpr int64_t kKeyStride = kKeyTile + 16;

  // For `type` f32 or bf16. Nothing if this processor or build of oneDNN has no kernels for it.
  static std::optional<TileMatmuls> Create(DType type, int64_t head_dim);

  DType type() const { return type_; }

  // Makes rows [row, row + rows) of the queries, x [rows, head_dim] times `factor`.
  void SetQueries(const float* x, float factor, int64_t row, int64_t rows, const Scratch& scratch) const;
  // Takes the tile's tokens, `width` of them with the padding.
  void SetTile(const KvTiles& tiles, int64_t width, const Scratch& scratch) const;

  // scores [rows, width] of the queries from `row` on, row stride kKeyTile, without an int8 cache's scales.
  void MultiplyKeys(int64_t row, int64_t rows, int64_t width, const Scratch& scratch, float* scores) const;
  // out [rows, head_dim] = weights [rows, width] x values, row stride kKeyTile; rows at most kRowBlock.
  void MultiplyValues(const float* weights, int64_t rows, int64_t width, const Scratch& scratch, float* out) const;

 private:
  TileMatmuls(DType type, int64_t head_dim) : type_(type), head_dim_(head_dim) {}

  const Brgemm& KernelOf(const std::vector<Brgemm>& kernels, int64_t width) const {
    return kernels[width / kKeyStep - 1];
  }

  DType type_;
  int64_t head_dim_;
  std::vector<Brgemm> score_kernels_;  // for widths kKeyStep, 2 kKeyStep, ... // [kKeyTile / kKeyStep]
  std::vector<Brgemm> value_kernels_;  // the same
};

}  // namespace quire
