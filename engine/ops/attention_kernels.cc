#include "engine/ops/attention_kernels.h"

#include <type_traits>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/attention_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using FloatVec = hn::Vec<FloatTag>;
constexpr int kLanes = static_cast<int>(hn::MaxLanes(FloatTag()));
constexpr bool kManyRegisters = kLanes >= 16;  // 32 of them, else 16
constexpr int kCacheLineBytes = 64;

// Into the second-level cache: into the first, it would hold the few line buffers that loads wait in.
HWY_INLINE void FetchAhead(const std::byte* address) { __builtin_prefetch(address, /*write=*/0, /*locality=*/2); }

// How a tile's elements lie along the dimension that a sum runs over: kSteps of them together for each lane.
template <DType kType>
struct Elements;

template <>
struct Elements<DType::kF32> {
  static constexpr int kSteps = 1;
  static constexpr int kLaneBytes = 4;
  static HWY_INLINE void Load(const std::byte* from, size_t count, FloatVec (&out)[kSteps]) {
    const auto* floats = reinterpret_cast<const float*>(from);
    out[0] = count < kLanes ? hn::LoadN(FloatTag(), floats, count) : hn::LoadU(FloatTag(), floats);
  }
};

template <>
struct Elements<DType::kBF16> {
  static constexpr int kSteps = 2;
  static constexpr int kLaneBytes = 4;
  static HWY_INLINE void Load(const std::byte* from, size_t count, FloatVec (&out)[kSteps]) {
    const hn::RebindToUnsigned<FloatTag> du;
    const auto* pairs = reinterpret_cast<const uint32_t*>(from);
    const auto both = count < kLanes ? hn::LoadN(du, pairs, count) : hn::LoadU(du, pairs);
    out[0] = hn::BitCast(FloatTag(), hn::ShiftLeft<16>(both));
    out[1] = hn::BitCast(FloatTag(), hn::And(both, hn::Set(du, 0xffff0000U)));
  }
};

template <>
struct Elements<DType::kInt8> {
  static constexpr int kSteps = 1;
  static constexpr int kLaneBytes = 1;
  static HWY_INLINE void Load(const std::byte* from, size_t count, FloatVec (&out)[kSteps]) {
    const hn::Rebind<int8_t, FloatTag> d8;
    const auto* bytes = reinterpret_cast<const int8_t*>(from);
    const auto loaded = count < kLanes ? hn::LoadN(d8, bytes, count) : hn::LoadU(d8, bytes);
    out[0] = hn::ConvertTo(FloatTag(), hn::PromoteTo(hn::RebindToSigned<FloatTag>(), loaded));
  }
};

template <int kRows, int kVecs>
HWY_INLINE void Clear(FloatVec (&sums)[kRows][kVecs]) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) sums[r][v] = hn::Zero(FloatTag());
  }
}

// sums[r][v] += factors[r * stride] * x[v][step].
template <int kRows, int kVecs, int kSteps>
HWY_INLINE void MultiplyAdd(const float* factors, int64_t stride, const FloatVec (&x)[kVecs][kSteps], int step,
                            FloatVec (&sums)[kRows][kVecs]) {
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    const auto factor = hn::Set(FloatTag(), factors[r * stride]);
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) sums[r][v] = hn::MulAdd(factor, x[v][step], sums[r][v]);
  }
}

// Scores of kRows queries against kVecs vectors of tokens, each of one block, kept in registers over head_dim.
template <DType kType, int kRows, int kVecs>
struct KeyColumns {
  const std::byte* from[kVecs];  // each vector's first element, and what to fetch meanwhile
  const std::byte* next[kVecs];

  // Vectors from `first` on of the run, the last one again and again past the end.
  HWY_INLINE KeyColumns(const TileRun& keys, int64_t first, int64_t end) {
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) {
      const int64_t token = (first + v < end ? first + v : end - 1) * kLanes;
      const int64_t block = token / keys.block_size;
      const int64_t offset = token % keys.block_size * Elements<kType>::kLaneBytes;
      from[v] = keys.tiles[block] + offset;
      next[v] = keys.next_tiles[block] + offset;
    }
  }

  HWY_INLINE void Multiply(const TileRun& keys, const float* queries, int64_t num_valid, float* scores,
                           int64_t scores_stride) const {
    constexpr int kSteps = Elements<kType>::kSteps;
    const int64_t step_bytes = keys.block_size * Elements<kType>::kLaneBytes;
    FloatVec sums[kRows][kVecs];
    Clear(sums);
    int64_t offset = 0;
    for (int64_t dim = 0; dim < keys.head_dim; dim += kSteps, offset += step_bytes) {
      FloatVec k[kVecs][kSteps];
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) {
        FetchAhead(next[v] + offset);
        Elements<kType>::Load(from[v] + offset, kLanes, k[v]);
      }
#pragma GCC unroll 2
      for (int step = 0; step < kSteps; ++step) MultiplyAdd(queries + dim + step, keys.head_dim, k, step, sums);
    }
#pragma GCC unroll 4
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) {
        if (v < num_valid) hn::StoreU(sums[r][v], FloatTag(), scores + r * scores_stride + v * kLanes);
      }
    }
  }
};

template <DType kType, int kRows>
void MultiplyKeyRows(const TileRun& keys, const float* queries, float* scores, int64_t scores_stride) {
  constexpr int kVecs = kManyRegisters || kRows <= 2 ? 4 : 2;
  const int64_t end = keys.num_blocks * keys.block_size / kLanes;
  for (int64_t first = 0; first < end; first += kVecs) {
    const KeyColumns<kType, kRows, kVecs> columns(keys, first, end);
    columns.Multiply(keys, queries, end - first, scores + first * kLanes, scores_stride);
  }
}

// Columns [dim, dim + kVecs * kLanes) of kRows output rows, kept in registers over all tokens; or, if there is one
// vector, its first `count` columns.
template <DType kType, int kRows, int kVecs>
HWY_INLINE void MultiplyValueColumns(const TileRun& values, const float* weights, int64_t weights_stride,
                                     int64_t num_tokens, int64_t dim, size_t count, float* out) {
  constexpr int kSteps = Elements<kType>::kSteps;
  constexpr int kVecBytes = kLanes * Elements<kType>::kLaneBytes;
  const int64_t step_bytes = values.head_dim * Elements<kType>::kLaneBytes;
  FloatVec sums[kRows][kVecs];
  Clear(sums);
  for (int64_t first = 0, block = 0; first < num_tokens; first += values.block_size, ++block) {
    const int64_t end = num_tokens - first < values.block_size ? num_tokens - first : values.block_size;
    const std::byte* from = values.tiles[block] + dim * Elements<kType>::kLaneBytes;
    const std::byte* next = values.next_tiles[block] + dim * Elements<kType>::kLaneBytes;
    const float* block_weights = weights + first;
    for (int64_t token = 0; token < end; token += kSteps, from += step_bytes, next += step_bytes) {
      FloatVec x[kVecs][kSteps];
#pragma GCC unroll 8
      for (int v = 0; v < kVecs; ++v) {
        if (v * kVecBytes % kCacheLineBytes == 0) FetchAhead(next + v * kVecBytes);
        Elements<kType>::Load(from + v * kVecBytes, kVecs == 1 ? count : kLanes, x[v]);
      }
#pragma GCC unroll 2
      for (int step = 0; step < kSteps; ++step) {
        if (token + step < end) MultiplyAdd(block_weights + token + step, weights_stride, x, step, sums);
      }
    }
  }
#pragma GCC unroll 4
  for (int r = 0; r < kRows; ++r) {
    float* to = out + r * values.head_dim + dim;
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) hn::StoreN(sums[r][v], FloatTag(), to + v * kLanes, kVecs == 1 ? count : kLanes);
  }
}

template <DType kType, int kRows>
void MultiplyValueRows(const TileRun& values, const float* weights, int64_t weights_stride, int64_t num_tokens,
                       float* out) {
  constexpr int kVecs = kManyRegisters || kRows <= 2 ? 4 : 2;
  int64_t dim = 0;
  for (; dim + kVecs * kLanes <= values.head_dim; dim += kVecs * kLanes) {
    MultiplyValueColumns<kType, kRows, kVecs>(values, weights, weights_stride, num_tokens, dim, kLanes, out);
  }
  for (; dim < values.head_dim; dim += kLanes) {
    const int64_t left = values.head_dim - dim;
    MultiplyValueColumns<kType, kRows, 1>(values, weights, weights_stride, num_tokens, dim,
                                          left < kLanes ? left : kLanes, out);
  }
}

// Calls body with each group of up to four rows, its size as a constant.
template <typename Body>
HWY_INLINE void ForRowGroups(int64_t rows, const Body& body) {
  int64_t row = 0;
  for (; row + 4 <= rows; row += 4) body(row, std::integral_constant<int, 4>());
  switch (rows - row) {
    case 3: return body(row, std::integral_constant<int, 3>());
    case 2: return body(row, std::integral_constant<int, 2>());
    case 1: return body(row, std::integral_constant<int, 1>());
    default: return;
  }
}

template <DType kType>
void MultiplyKeysOf(const TileRun& keys, const float* queries, int64_t rows, float* scores, int64_t scores_stride) {
  ForRowGroups(rows, [&](int64_t row, auto num_rows) {
    MultiplyKeyRows<kType, num_rows>(keys, queries + row * keys.head_dim, scores + row * scores_stride, scores_stride);
  });
}

void MultiplyKeys(const TileRun& keys, const float* queries, int64_t rows, float* scores, int64_t scores_stride) {
  switch (keys.dtype) {
    case DType::kF32: return MultiplyKeysOf<DType::kF32>(keys, queries, rows, scores, scores_stride);
    case DType::kBF16: return MultiplyKeysOf<DType::kBF16>(keys, queries, rows, scores, scores_stride);
    case DType::kInt8: return MultiplyKeysOf<DType::kInt8>(keys, queries, rows, scores, scores_stride);
  }
}

template <DType kType>
void MultiplyValuesOf(const TileRun& values, const float* weights, int64_t weights_stride, int64_t rows,
                      int64_t num_tokens, float* out) {
  ForRowGroups(rows, [&](int64_t row, auto num_rows) {
    MultiplyValueRows<kType, num_rows>(values, weights + row * weights_stride, weights_stride, num_tokens,
                                       out + row * values.head_dim);
  });
}

void MultiplyValues(const TileRun& values, const float* weights, int64_t weights_stride, int64_t rows,
                    int64_t num_tokens, float* out) {
  switch (values.dtype) {
    case DType::kF32: return MultiplyValuesOf<DType::kF32>(values, weights, weights_stride, rows, num_tokens, out);
    case DType::kBF16: return MultiplyValuesOf<DType::kBF16>(values, weights, weights_stride, rows, num_tokens, out);
    case DType::kInt8: return MultiplyValuesOf<DType::kInt8>(values, weights, weights_stride, rows, num_tokens, out);
  }
}

}  // namespace quire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(MultiplyKeys);
HWY_EXPORT(MultiplyValues);

void MultiplyKeys(const TileRun& keys, const float* queries, int64_t rows, float* scores, int64_t scores_stride) {
  HWY_DYNAMIC_DISPATCH(MultiplyKeys)(keys, queries, rows, scores, scores_stride);
}

void MultiplyValues(const TileRun& values, const float* weights, int64_t weights_stride, int64_t rows,
                    int64_t num_tokens, float* out) {
  HWY_DYNAMIC_DISPATCH(MultiplyValues)(values, weights, weights_stride, rows, num_tokens, out);
}

}  // namespace quire
#endif  // HWY_ONCE
