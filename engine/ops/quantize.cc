#include "engine/ops/quantize.h"

#include "engine/ops/weight_type.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/ops/quantize.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace quire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

void QuantizeGroups(const float* values, int64_t count, const QuantizedRows& out) {
  const hn::CappedTag<float, 16> df;
  const hn::RebindToSigned<decltype(df)> di32;
  const hn::Rebind<int8_t, decltype(df)> di8;
  constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(df));
  constexpr int kVecs = static_cast<int>(kGroupSize / kLanes);
  for (int64_t group = 0; group < count / kGroupSize; ++group) {
    const float* in = values + group * kGroupSize;
    hn::Vec<decltype(df)> x[kVecs];
    auto largest = hn::Zero(df);
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) {
      x[v] = hn::LoadU(df, in + v * kLanes);
      largest = hn::Max(largest, hn::Abs(x[v]));
    }
    const float magnitude = hn::ReduceMax(df, largest);
    const float scale = magnitude * (1.0F / 127.0F);
    // Below this the inverse could overflow; such values are 0 to any sum.
    constexpr float kLeastMagnitude = 1e-30F;
    const auto inverse = hn::Set(df, magnitude > kLeastMagnitude ? 127.0F / magnitude : 0.0F);
    auto sum = hn::Zero(di32);
#pragma GCC unroll 8
    for (int v = 0; v < kVecs; ++v) {
      const auto quant = hn::NearestInt(hn::Mul(x[v], inverse));
      sum = hn::Add(sum, quant);
      hn::StoreU(hn::DemoteTo(di8, quant), di8, out.quants + group * kGroupSize + v * kLanes);
    }
    const int32_t total = hn::ReduceSum(di32, sum);
    out.scales[group] = scale;
    out.sums[group] = total;
    out.scaled_sums[group] = scale * static_cast<float>(total);
  }
}

}  // namespace quire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {

HWY_EXPORT(QuantizeGroups);

void QuantizeGroups(const float* values, int64_t count, const QuantizedRows& out) {
  HWY_DYNAMIC_DISPATCH(QuantizeGroups)(values, count, out);
}

}  // namespace quire
#endif  // HWY_ONCE
