#include "engine/ops/softmax_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/softmax_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "engine/ops/lane_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = LaneSums::Tag;
using FloatVec = LaneSums::Vec;
constexpr int64_t kLanes = LaneSums::kLanes;

// e^x = 2^(x log2(e)) for x <= 0; below -87, e^-87. The whole part of the power goes into the exponent's bits, the
// rest, in [-0.5, 0.5], into a polynomial whose greatest relative error is least: 1e-7 with its own rounding.
HWY_INLINE FloatVec Exp(FloatVec x) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const auto shift = hn::Set(d, 12582912.0F);  // 1.5 * 2^23: adding it leaves the whole part in the low bits
  const auto log2e = hn::Set(d, 1.442695041F);
  const auto bounded = hn::Max(hn::Set(d, -87.0F), x);  // in this order a NaN stays
  const auto shifted = hn::MulAdd(bounded, log2e, shift);
  const auto rest = hn::MulSub(bounded, log2e, hn::Sub(shifted, shift));
  auto power = hn::Set(d, 0.00015345811F);
  for (const float coefficient : {0.0013399931F, 0.009618489F, 0.055503286F, 0.24022646F, 0.6931472F, 1.0F}) {
    power = hn::MulAdd(power, rest, hn::Set(d, coefficient));
  }
  return hn::BitCast(d, hn::Add(hn::BitCast(di, power), hn::ShiftLeft<23>(hn::BitCast(di, shifted))));
}

// One row: vectors of which every key is seen, then those of which some are, then zeros.
template <bool kScaled>
HWY_INLINE SoftmaxStats ExpRow(const ScoreTile& tile, float* scores, int64_t num_valid) {
  const FloatTag d;
  const int64_t full = num_valid - num_valid % LaneSums::kCount;
  const auto score = [&](int64_t i) HWY_ATTR {
    const auto unscaled = hn::LoadU(d, scores + i);
    return kScaled ? hn::Mul(unscaled, hn::LoadU(d, tile.key_scales + i)) : unscaled;
  };
  const auto valid = [&](int64_t i) HWY_ATTR { return hn::FirstN(d, num_valid - i); };
  auto max = hn::Set(d, hwy::LowestValue<float>());
  for (int64_t i = 0; i < full; i += kLanes) max = hn::Max(max, score(i));
  for (int64_t i = full; i < num_valid; i += kLanes) max = hn::Max(max, hn::IfThenElse(valid(i), score(i), max));
  const float max_score = hn::ReduceMax(d, max);
  const auto max_everywhere = hn::Set(d, max_score);
  const auto value_weight = [&](FloatVec weight, int64_t i) HWY_ATTR {
    return kScaled ? hn::Mul(weight, hn::LoadU(d, tile.value_scales + i)) : weight;
  };
  LaneSums sums;
  int64_t i = 0;
  while (i < full) {
#pragma GCC unroll 4
    for (int v = 0; v < LaneSums::kVecs; ++v, i += kLanes) {
      const auto weight = Exp(hn::Sub(score(i), max_everywhere));
      sums.vecs[v] = hn::Add(sums.vecs[v], weight);
      hn::StoreU(value_weight(weight, i), d, scores + i);
    }
  }
  for (int v = 0; i < num_valid; ++v, i += kLanes) {
    const auto weight = hn::IfThenElseZero(valid(i), Exp(hn::Sub(score(i), max_everywhere)));
    sums.vecs[v] = hn::Add(sums.vecs[v], weight);
    hn::StoreU(hn::IfThenElseZero(valid(i), value_weight(weight, i)), d, scores + i);
  }
  for (; i < tile.width; i += kLanes) hn::StoreU(hn::Zero(d), d, scores + i);
  return {.max = max_score, .sum = sums.Total()};
}

void ExpScores(const ScoreTile& tile, SoftmaxStats* stats) {
  for (int64_t row = 0; row < tile.rows; ++row) {
    float* scores = tile.scores + row * tile.stride;
    int64_t num_valid = tile.first_row_keys + (tile.row_offset + row) / tile.group;
    num_valid = num_valid < tile.num_keys ? num_valid : tile.num_keys;
    if (num_valid <= 0) {
      for (int64_t i = 0; i < tile.width; i += kLanes) hn::StoreU(hn::Zero(FloatTag()), FloatTag(), scores + i);
      stats[row] = {};
    } else if (tile.key_scales != nullptr) {
      stats[row] = ExpRow<true>(tile, scores, num_valid);
    } else {
      stats[row] = ExpRow<false>(tile, scores, num_valid);
    }
  }
}

void JoinRow(SoftmaxStats& stats, float* values, const SoftmaxStats& part, const float* part_values, int64_t head_dim) {
  const FloatTag d;
  const bool part_is_greater = part.max > stats.max;
  const float difference = part_is_greater ? stats.max - part.max : part.max - stats.max;
  // One of the two factors is 1. A row without a key so far adds zeros, whatever its factor.
  const auto smaller_factor = Exp(hn::Set(d, difference));
  const auto one = hn::Set(d, 1.0F);
  const auto old_factor = part_is_greater ? smaller_factor : one;
  const auto part_factor = part_is_greater ? one : smaller_factor;
  const auto join = [&](FloatVec old, FloatVec added)
                        HWY_ATTR { return hn::MulAdd(added, part_factor, hn::Mul(old, old_factor)); };
  int64_t i = 0;
  for (; i + kLanes <= head_dim; i += kLanes) {
    hn::StoreU(join(hn::LoadU(d, values + i), hn::LoadU(d, part_values + i)), d, values + i);
  }
  if (i < head_dim) {
    const size_t n = head_dim - i;
    hn::StoreN(join(hn::LoadN(d, values + i, n), hn::LoadN(d, part_values + i, n)), d, values + i, n);
  }
  stats.sum = hn::GetLane(join(hn::Set(d, stats.sum), hn::Set(d, part.sum)));
  stats.max = part_is_greater ? part.max : stats.max;
}

void JoinTile(const SoftmaxState& state, const SoftmaxStats* tile_stats, const float* tile_values, int64_t rows,
              int64_t head_dim) {
  for (int64_t row = 0; row < rows; ++row) {
    if (tile_stats[row].sum == 0.0F) continue;
    JoinRow(state.stats[row], state.values + row * head_dim, tile_stats[row], tile_values + row * head_dim, head_dim);
  }
}

void Scale(const float* x, float factor, int64_t count, float* out) {
  const FloatTag d;
  const auto scale = hn::Set(d, factor);
  int64_t i = 0;
  for (; i + kLanes <= count; i += kLanes) hn::StoreU(hn::Mul(hn::LoadU(d, x + i), scale), d, out + i);
  if (i < count) hn::StoreN(hn::Mul(hn::LoadN(d, x + i, count - i), scale), d, out + i, count - i);
}

}  // namespace quire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(ExpScores);
HWY_EXPORT(JoinTile);
HWY_EXPORT(Scale);

void ExpScores(const ScoreTile& tile, SoftmaxStats* stats) { HWY_DYNAMIC_DISPATCH(ExpScores)(tile, stats); }

void JoinTile(const SoftmaxState& state, const SoftmaxStats* tile_stats, const float* tile_values, int64_t rows,
              int64_t head_dim) {
  HWY_DYNAMIC_DISPATCH(JoinTile)(state, tile_stats, tile_values, rows, head_dim);
}

void Scale(const float* x, float factor, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(Scale)(x, factor, count, out);
}

}  // namespace quire
#endif  // HWY_ONCE
