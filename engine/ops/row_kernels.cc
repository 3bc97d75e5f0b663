#include "engine/ops/row_kernels.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/row_kernels.cc"
#include <hwy/foreach_target.h>
#include <hwy/contrib/math/math-inl.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::ScalableTag<float>;

float SumOfSquares(const float* x, int64_t count) {
  const FloatTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  auto sum = hn::Zero(d);
  int64_t i = 0;
  for (; i + lanes <= count; i += lanes) {
    const auto value = hn::LoadU(d, x + i);
    sum = hn::MulAdd(value, value, sum);
  }
  if (i < count) {
    const auto value = hn::LoadN(d, x + i, count - i);  // zero past the end
    sum = hn::MulAdd(value, value, sum);
  }
  return hn::ReduceSum(d, sum);
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

void SiluMulColumns(const float* gate, const float* up, int64_t count, float* out) {
  const FloatTag d;
  const auto lanes = static_cast<int64_t>(hn::Lanes(d));
  const auto one = hn::Set(d, 1.0F);
  const auto max_exponent = hn::Set(d, 88.0F);  // exp overflows beyond; the quotient is as good as zero there
  for (int64_t i = 0; i < count; i += lanes) {
    const size_t n = count - i;
    const auto g = hn::LoadN(d, gate + i, n);
    const auto silu = hn::Div(g, hn::Add(one, hn::Exp(d, hn::Min(hn::Neg(g), max_exponent))));
    hn::StoreN(hn::Mul(silu, hn::LoadN(d, up + i, n)), d, out + i, n);
  }
}

}  // namespace quire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(SumOfSquares);
HWY_EXPORT(ScaleByWeights);
HWY_EXPORT(SiluMulColumns);

float SumOfSquares(const float* x, int64_t count) { return HWY_DYNAMIC_DISPATCH(SumOfSquares)(x, count); }

void ScaleByWeights(const float* x, float scale, const float* weight, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(ScaleByWeights)(x, scale, weight, count, out);
}

void SiluMulColumns(const float* gate, const float* up, int64_t count, float* out) {
  HWY_DYNAMIC_DISPATCH(SiluMulColumns)(gate, up, count, out);
}

}  // namespace quire
#endif  // HWY_ONCE
