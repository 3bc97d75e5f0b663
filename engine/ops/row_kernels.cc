#include "engine/ops/row_kernels.h"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/row_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

#include "engine/ops/lane_sums-inl.h"

HWY_BEFORE_NAMESPACE();
namespace quire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;

float SumOfSquares(const float* x, int64_t count) {
  const LaneSums::Tag d;
  LaneSums sums;
  int64_t i = 0;
  for (; i + LaneSums::kCount <= count; i += LaneSums::kCount) {
#pragma GCC unroll 4
    for (int v = 0; v < LaneSums::kVecs; ++v) {
      const auto value = hn::LoadU(d, x + i + v * LaneSums::kLanes);
      sums.vecs[v] = hn::MulAdd(value, value, sums.vecs[v]);
    }
  }
  for (int v = 0; i < count; ++v, i += LaneSums::kLanes) {
    const auto value = hn::LoadN(d, x + i, count - i);  // zero past the end
    sums.vecs[v] = hn::MulAdd(value, value, sums.vecs[v]);
  }
  return sums.Total();
}

void ScaleByWeights(const float* x, float scale, const float* weight, int64_t count, float* out) {
  const FloatTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto factor = hn::Set(d, scale);
  for (int64_t i = 0; i < count; i += lanes) {
    const size_t n = count - i;
    const auto scaled = hn::Mul(hn::LoadN(d, x + i, n), factor);
    hn::StoreN(hn::Mul(scaled, hn::LoadN(d, weight + i, n)), d, out + i, n);
  }
}

void SiluMulRows(float* gate, const float* up, int64_t stride, int64_t rows, int64_t count) {
  const FloatTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1.0F);
  const auto max_exponent = hn::Set(d, 88.0F);  // exp overflows beyond; the quotient is as good as zero there
  for (int64_t row = 0; row < rows; ++row, gate += stride, up += stride) {
    for (int64_t i = 0; i < count; i += lanes) {
      const size_t n = count - i;
      const auto g = hn::LoadN(d, gate + i, n);
      const auto silu = hn::Div(g, hn::Add(one, hn::Exp(d, hn::Min(hn::Neg(g), max_exponent))));
      hn::StoreN(hn::Mul(silu, hn::LoadN(d, up + i, n)), d, gate + i, n);
    }
  }
}

// (x, y) turned by the angles from pair `i` on, of which `n` count.
HWY_INLINE void Rotate(const float* cosines, const float* sines, int64_t i, size_t n, hn::Vec<FloatTag>& x,
                       hn::Vec<FloatTag>& y) {
  const auto cosine = hn::LoadN(FloatTag(), cosines + i, n);
  const auto sine = hn::LoadN(FloatTag(), sines + i, n);
  const auto turned = hn::MulSub(x, cosine, hn::Mul(y, sine));
  y = hn::MulAdd(x, sine, hn::Mul(y, cosine));
  x = turned;
}

void RotateHalves(const float* cosines, const float* sines, int64_t num_pairs, float* x) {
  const FloatTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  for (int64_t i = 0; i < num_pairs; i += lanes) {
    const size_t n = num_pairs - i < lanes ? num_pairs - i : lanes;
    auto first = hn::LoadN(d, x + i, n);
    auto second = hn::LoadN(d, x + num_pairs + i, n);
    Rotate(cosines, sines, i, n, first, second);
    hn::StoreN(first, d, x + i, n);
    hn::StoreN(second, d, x + num_pairs + i, n);
  }
}

void RotateNeighbours(const float* cosines, const float* sines, int64_t num_pairs, float* x) {
  const FloatTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  int64_t i = 0;
  hn::Vec<FloatTag> first;
  hn::Vec<FloatTag> second;
  for (; i + lanes <= num_pairs; i += lanes) {
    hn::LoadInterleaved2(d, x + 2 * i, first, second);
    Rotate(cosines, sines, i, lanes, first, second);
    hn::StoreInterleaved2(first, second, d, x + 2 * i);
  }
  if (i == num_pairs) return;
  HWY_ALIGN float last[2 * hn::MaxLanes(d)] = {};
  std::copy(x + 2 * i, x + 2 * num_pairs, last);
  hn::LoadInterleaved2(d, last, first, second);
  Rotate(cosines, sines, i, num_pairs - i, first, second);
  hn::StoreInterleaved2(first, second, d, last);
  std::copy(last, last + 2 * (num_pairs - i), x + 2 * i);
}

}  // namespace quire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(SumOfSquares);
HWY_EXPORT(ScaleByWeights);
HWY_EXPORT(SiluMulRows);
HWY_EXPORT(RotateNeighbours);
HWY_EXPORT(RotateHalves);

float SumOfSquares(const float* x, int64_t count) { return HWY_DYNAMIC_DISPATCH(SumOfSquares)(x, count); }

void ScaleByWeights(const float* x, float scale, const float* weight, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(ScaleByWeights)(x, scale, weight, count, out);
}

void SiluMulRows(float* gate, const float* up, int64_t stride, int64_t rows, int64_t count) {
  HWY_DYNAMIC_DISPATCH(SiluMulRows)(gate, up, stride, rows, count);
}

void RotateNeighbours(const float* cosines, const float* sines, int64_t num_pairs, float* x) {
  HWY_DYNAMIC_DISPATCH(RotateNeighbours)(cosines, sines, num_pairs, x);
}

void RotateHalves(const float* cosines, const float* sines, int64_t num_pairs, float* x) {
  HWY_DYNAMIC_DISPATCH(RotateHalves)(cosines, sines, num_pairs, x);
}

}  // namespace quire
#endif  // HWY_ONCE
