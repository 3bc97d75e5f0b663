#include "engine/ops/attention_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/attention_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using UintTag = hn::RebindToUnsigned<FloatTag>;
using FloatVec = hn::Vec<FloatTag>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));

// Elements 2i and 2i + 1 of a pair-packed bf16 vector.
HWY_INLINE FloatVec EvenHalf(hn::Vec<UintTag> both) { return hn::BitCast(FloatTag(), hn::ShiftLeft<16>(both)); }
HWY_INLINE FloatVec OddHalf(hn::Vec<UintTag> both) {
  return hn::BitCast(FloatTag(), hn::And(both, hn::Set(UintTag(), 0xffff0000U)));
}

// Scores of kRows queries against kVecs * kLanes neighbouring tokens of one block, kept in registers over head_dim.
template <int kRows, int kVecs>
HWY_INLINE void MultiplyKeyColumns(const TileRun& keys, const std::byte* tile, int64_t first_token,
                                   const float* queries, float* scores, int64_t scores_stride) {
  const FloatTag d;
  FloatVec sums[kRows][kVecs];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) sums[r][v] = hn::Zero(d);
  }
  const auto multiply_add = [&](const FloatVec(&k)[kVecs], int64_t dim) HWY_ATTR {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const auto query = hn::Set(d, queries[r * keys.head_dim + dim]);
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v) sums[r][v] = hn::MulAdd(query, k[v], sums[r][v]);
    }
  };
  if (keys.dtype == DType::kF32) {
    const float* source = reinterpret_cast<const float*>(tile) + first_token;  // [head_dim, block_size]
    for (int64_t dim = 0; dim < keys.head_dim; ++dim) {
      FloatVec k[kVecs];
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v) k[v] = hn::LoadU(d, source + dim * keys.block_size + v * kLanes);
      multiply_add(k, dim);
    }
  } else {
    const auto* source = reinterpret_cast<const uint32_t*>(tile) + first_token;  // [head_dim / 2, block_size] of pairs
    for (int64_t dim = 0; dim < keys.head_dim; dim += 2) {
      FloatVec even[kVecs];
      FloatVec odd[kVecs];
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v) {
        const auto both = hn::LoadU(UintTag(), source + dim / 2 * keys.block_size + v * kLanes);
        even[v] = EvenHalf(both);
        odd[v] = OddHalf(both);
      }
      multiply_add(even, dim);
      multiply_add(odd, dim + 1);
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) hn::StoreU(sums[r][v], d, scores + r * scores_stride + v * kLanes);
  }
}

template <int kRows>
void MultiplyKeyRows(const TileRun& keys, const float* queries, float* scores, int64_t scores_stride) {
  constexpr int kVecs = kLanes >= 16 ? 1 : 16 / static_cast<int>(kLanes);  // 16 tokens, the least block
  constexpr int kVecsPerCall = kVecs > 2 ? 2 : kVecs;
  constexpr int64_t kTokensPerCall = kVecsPerCall * kLanes;
  for (int64_t block = 0; block < keys.num_blocks; ++block) {
    for (int64_t token = 0; token < keys.block_size; token += kTokensPerCall) {
      MultiplyKeyColumns<kRows, kVecsPerCall>(keys, keys.tiles[block], token, queries,
                                              scores + block * keys.block_size + token, scores_stride);
    }
  }
}

void MultiplyKeys(const TileRun& keys, const float* queries, int64_t rows, float* scores, int64_t scores_stride) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    MultiplyKeyRows<4>(keys, queries + row * keys.head_dim, scores + row * scores_stride, scores_stride);
  }
  const float* rest_queries = queries + row * keys.head_dim;
  float* rest_scores = scores + row * scores_stride;
  switch (rows - row) {
    case 3: MultiplyKeyRows<3>(keys, rest_queries, rest_scores, scores_stride); break;
    case 2: MultiplyKeyRows<2>(keys, rest_queries, rest_scores, scores_stride); break;
    case 1: MultiplyKeyRows<1>(keys, rest_queries, rest_scores, scores_stride); break;
    default: break;
  }
}

// Columns [dim, dim + kVecs * kLanes) of kRows output rows (the last vector may be cut short to `last_lanes`), kept in
// registers over all tokens.
template <int kRows, int kVecs>
HWY_INLINE void MultiplyValueColumns(const TileRun& values, const float* weights, int64_t weights_stride,
                                     int64_t num_tokens, int64_t dim, size_t last_lanes, float* out) {
  const FloatTag d;
  const UintTag du;
  FloatVec sums[kRows][kVecs];
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) sums[r][v] = hn::Zero(d);
  }
  const auto multiply_add = [&](const FloatVec(&x)[kVecs], int64_t token) HWY_ATTR {
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
      const auto weight = hn::Set(d, weights[r * weights_stride + token]);
#pragma GCC unroll 4
      for (int v = 0; v < kVecs; ++v) sums[r][v] = hn::MulAdd(weight, x[v], sums[r][v]);
    }
  };
  for (int64_t block = 0; block * values.block_size < num_tokens; ++block) {
    const int64_t first = block * values.block_size;
    const int64_t count = num_tokens - first < values.block_size ? num_tokens - first : values.block_size;
    if (values.dtype == DType::kF32) {
      const float* source = reinterpret_cast<const float*>(values.tiles[block]) + dim;  // [block_size, head_dim]
      for (int64_t token = 0; token < count; ++token) {
        FloatVec x[kVecs];
#pragma GCC unroll 4
        for (int v = 0; v < kVecs; ++v) {
          const float* from = source + token * values.head_dim + v * kLanes;
          x[v] = v + 1 == kVecs ? hn::LoadN(d, from, last_lanes) : hn::LoadU(d, from);
        }
        multiply_add(x, first + token);
      }
    } else {
      // [block_size / 2, head_dim] of pairs of tokens
      const auto* source = reinterpret_cast<const uint32_t*>(values.tiles[block]) + dim;
      for (int64_t token = 0; token < count; token += 2) {
        FloatVec even[kVecs];
        FloatVec odd[kVecs];
#pragma GCC unroll 4
        for (int v = 0; v < kVecs; ++v) {
          const uint32_t* from = source + token / 2 * values.head_dim + v * kLanes;
          const auto both = v + 1 == kVecs ? hn::LoadN(du, from, last_lanes) : hn::LoadU(du, from);
          even[v] = EvenHalf(both);
          odd[v] = OddHalf(both);
        }
        multiply_add(even, first + token);
        if (token + 1 < count) multiply_add(odd, first + token + 1);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecs; ++v) {
      float* to = out + r * values.head_dim + dim + v * kLanes;
      if (v + 1 == kVecs) {
        hn::StoreN(sums[r][v], d, to, last_lanes);
      } else {
        hn::StoreU(sums[r][v], d, to);
      }
    }
  }
}

template <int kRows>
void MultiplyValueRows(const TileRun& values, const float* weights, int64_t weights_stride, int64_t num_tokens,
                       float* out) {
  constexpr int kVecs = kLanes >= 16 ? 4 : 2;
  int64_t dim = 0;
  for (; dim + kVecs * kLanes <= values.head_dim; dim += kVecs * kLanes) {
    MultiplyValueColumns<kRows, kVecs>(values, weights, weights_stride, num_tokens, dim, kLanes, out);
  }
  for (; dim < values.head_dim; dim += kLanes) {
    const int64_t left = values.head_dim - dim;
    MultiplyValueColumns<kRows, 1>(values, weights, weights_stride, num_tokens, dim, left < kLanes ? left : kLanes,
                                   out);
  }
}

void MultiplyValues(const TileRun& values, const float* weights, int64_t weights_stride, int64_t rows,
                    int64_t num_tokens, float* out) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    MultiplyValueRows<4>(values, weights + row * weights_stride, weights_stride, num_tokens,
                         out + row * values.head_dim);
  }
  const float* rest_weights = weights + row * weights_stride;
  float* rest_out = out + row * values.head_dim;
  switch (rows - row) {
    case 3: MultiplyValueRows<3>(values, rest_weights, weights_stride, num_tokens, rest_out); break;
    case 2: MultiplyValueRows<2>(values, rest_weights, weights_stride, num_tokens, rest_out); break;
    case 1: MultiplyValueRows<1>(values, rest_weights, weights_stride, num_tokens, rest_out); break;
    default: break;
  }
}

SoftmaxStats ExpScores(float* scores, int64_t num_valid, int64_t count) {
  const FloatTag d;
  const auto lowest = hn::Set(d, hwy::LowestValue<float>());
  auto max = lowest;
  for (int64_t i = 0; i < num_valid; i += kLanes) {
    const size_t n = num_valid - i;
    max = hn::Max(max, hn::IfThenElse(hn::FirstN(d, n), hn::LoadN(d, scores + i, n), lowest));
  }
  const float max_score = hn::ReduceMax(d, max);
  const auto max_everywhere = hn::Set(d, max_score);
  auto sum = hn::Zero(d);
  for (int64_t i = 0; i < count; i += kLanes) {
    const size_t n = num_valid > i ? num_valid - i : 0;
    const auto weight = hn::Exp(d, hn::Sub(hn::LoadN(d, scores + i, n), max_everywhere));
    const auto valid_weight = hn::IfThenElseZero(hn::FirstN(d, n), weight);
    sum = hn::Add(sum, valid_weight);
    hn::StoreN(valid_weight, d, scores + i, count - i);
  }
  return {.max = max_score, .sum = hn::ReduceSum(d, sum)};
}

void ScaleAdd(float* out, float out_factor, const float* x, float x_factor, int64_t count) {
  const FloatTag d;
  const auto scale_out = hn::Set(d, out_factor);
  const auto scale_x = hn::Set(d, x_factor);
  for (int64_t i = 0; i < count; i += kLanes) {
    const size_t n = count - i;
    const auto scaled = hn::Mul(hn::LoadN(d, out + i, n), scale_out);
    hn::StoreN(hn::MulAdd(hn::LoadN(d, x + i, n), scale_x, scaled), d, out + i, n);
  }
}

void Scale(const float* x, float factor, int64_t count, float* out) {
  const FloatTag d;
  const auto scale = hn::Set(d, factor);
  for (int64_t i = 0; i < count; i += kLanes) {
    const size_t n = count - i;
    hn::StoreN(hn::Mul(hn::LoadN(d, x + i, n), scale), d, out + i, n);
  }
}

}  // namespace quire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(MultiplyKeys);
HWY_EXPORT(MultiplyValues);
HWY_EXPORT(ExpScores);
HWY_EXPORT(ScaleAdd);
HWY_EXPORT(Scale);

void MultiplyKeys(const TileRun& keys, const float* queries, int64_t rows, float* scores, int64_t scores_stride) {
  HWY_DYNAMIC_DISPATCH(MultiplyKeys)(keys, queries, rows, scores, scores_stride);
}

void MultiplyValues(const TileRun& values, const float* weights, int64_t weights_stride, int64_t rows,
                    int64_t num_tokens, float* out) {
  HWY_DYNAMIC_DISPATCH(MultiplyValues)(values, weights, weights_stride, rows, num_tokens, out);
}

SoftmaxStats ExpScores(float* scores, int64_t num_valid, int64_t count) {
  return HWY_DYNAMIC_DISPATCH(ExpScores)(scores, num_valid, count);
}

void ScaleAdd(float* out, float out_factor, const float* x, float x_factor, int64_t count) {
  HWY_DYNAMIC_DISPATCH(ScaleAdd)(out, out_factor, x, x_factor, count);
}

void Scale(const float* x, float factor, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(Scale)(x, factor, count, out);
}

}  // namespace quire
#endif  // HWY_ONCE
