#include "engine/ops/tile_matmuls.h"

#include <utility>

#include "engine/base/check.h"
#include "engine/ops/convert.h"
#include "engine/ops/softmax_kernels.h"

namespace quire {
namespace {

// bf16 numbers that a query or a weight is the sum of.
constexpr int64_t kTerms = 2;

}  // namespace

std::optional<TileMatmuls> TileMatmuls::Create(DType type, int64_t head_dim) {
  QUIRE_CHECK(type == DType::kF32 || type == DType::kBF16);
  TileMatmuls result(type, head_dim);
  const int64_t terms = type == DType::kF32 ? 1 : kTerms;
  for (int64_t width = kKeyStep; width <= kKeyTile; width += kKeyStep) {
    auto scores = Brgemm::Create({.n = width,
                                  .k = head_dim,
                                  .lda = terms * head_dim,
                                  .ldb = kKeyStride,
                                  .ldc = kKeyTile,
                                  .input_type = type,
                                  .terms = terms,
                                  .term_stride = head_dim});
    auto values = Brgemm::Create({.n = head_dim,
                                  .k = width,
                                  .lda = terms * kKeyTile,
                                  .ldc = head_dim,
                                  .input_type = type,
                                  .terms = terms,
                                  .term_stride = kKeyTile});
    if (!scores || !values) return std::nullopt;
    result.score_kernels_.push_back(*std::move(scores));
    result.value_kernels_.push_back(*std::move(values));
  }
  return result;
}

void TileMatmuls::SetQueries(const float* x, float factor, int64_t row, int64_t rows, const Scratch& scratch) const {
  if (type_ == DType::kF32) {
    Scale(x, factor, rows * head_dim_, reinterpret_cast<float*>(scratch.queries) + row * head_dim_);
    return;
  }
  auto* queries = reinterpret_cast<BFloat16*>(scratch.queries) + row * kTerms * head_dim_;
  for (int64_t r = 0; r < rows; ++r, x += head_dim_, queries += kTerms * head_dim_) {
    SplitIntoBFloat16(x, factor, head_dim_, queries, queries + head_dim_);
  }
}

void TileMatmuls::SetTile(const KvTiles& tiles, int64_t width, const Scratch& scratch) const {
  if (type_ == DType::kF32) {
    tiles.ExpandKeys(kKeyStride, reinterpret_cast<float*>(scratch.keys));
    tiles.ExpandValues(width, reinterpret_cast<float*>(scratch.values));
  } else {
    tiles.PackKeys(kKeyStride, reinterpret_cast<BFloat16*>(scratch.keys));
    tiles.PackValues(width, reinterpret_cast<BFloat16*>(scratch.values));
  }
}

void TileMatmuls::MultiplyKeys(int64_t row, int64_t rows, int64_t width, const Scratch& scratch, float* scores) const {
  const std::byte* queries = scratch.queries + row * head_dim_ * SizeOf(DType::kF32);  // or as much in two terms
  KernelOf(score_kernels_, width).Execute(queries, scratch.keys, scores, rows, scratch.brgemm);
}

void TileMatmuls::MultiplyValues(const float* weights, int64_t rows, int64_t width, const Scratch& scratch,
                                 float* out) const {
  const void* factors = weights;
  if (type_ == DType::kBF16) {
    auto* terms = reinterpret_cast<BFloat16*>(scratch.weights);
    factors = terms;
    for (int64_t r = 0; r < rows; ++r, weights += kKeyTile, terms += kTerms * kKeyTile) {
      SplitIntoBFloat16(weights, 1.0F, width, terms, terms + kKeyTile);
    }
  }
  KernelOf(value_kernels_, width).Execute(factors, scratch.values, out, rows, scratch.brgemm);
}

}  // namespace quire
