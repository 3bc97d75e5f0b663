#include "engine/sampling/vocabulary_passes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "engine/base/check.h"
#include "engine/base/math.h"
#include "engine/base/status.h"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "engine/sampling/vocabulary_passes.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

// Every instruction set rounds the same numbers in the same order: sums go by kSums numbers, whatever a vector holds,
// and products and sums are not contracted (CMakeLists.txt), as only some have a multiply-add that rounds once.
HWY_BEFORE_NAMESPACE();
namespace quire::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using FloatTag = hn::CappedTag<float, 16>;
using HalfTag = hn::Half<FloatTag>;
using DoubleTag = hn::Rebind<double, HalfTag>;
using FloatVec = hn::Vec<FloatTag>;
using DoubleVec = hn::Vec<DoubleTag>;
constexpr int64_t kLanes = static_cast<int64_t>(hn::MaxLanes(FloatTag()));
constexpr int64_t kSums = 16;
constexpr int kVecsOfSums = static_cast<int>(kSums / kLanes);
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// exp(x) for x <= 0 within 3e-7 relative; 0 below -87, where float is about to lose precision. The argument is split
// into n ln 2 + r with |r| <= ln 2 / 2; exp(r) is its Taylor polynomial of degree 7, and 2^n is written as bits.
HWY_INLINE FloatVec ExpNonPositive(FloatVec x) {
  const FloatTag d;
  const hn::RebindToSigned<FloatTag> di;
  const auto lowest = hn::Set(d, -87.0F);
  const auto round_to_integer = hn::Set(d, 12582912.0F);  // 1.5 * 2^23: the sum's lowest bit counts ones
  const auto clamped = hn::Max(x, lowest);
  const auto rounded = hn::Add(hn::Mul(clamped, hn::Set(d, 1.44269504F)), round_to_integer);
  const auto n = hn::Sub(rounded, round_to_integer);
  // The greater part of ln 2 has few bits, so that n times it is exact.
  const auto without_high = hn::Sub(clamped, hn::Mul(n, hn::Set(d, 0.693359375F)));
  const auto r = hn::Sub(without_high, hn::Mul(n, hn::Set(d, -2.12194440e-4F)));
  auto poly = hn::Set(d, 1.0F / 5040.0F);
  for (const float term : {1.0F / 720.0F, 1.0F / 120.0F, 1.0F / 24.0F, 1.0F / 6.0F, 0.5F, 1.0F, 1.0F}) {
    poly = hn::Add(hn::Mul(poly, r), hn::Set(d, term));
  }
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, rounded));  // what round_to_integer added is shifted out
  const auto result = hn::BitCast(d, hn::Add(hn::BitCast(di, poly), exponent));
  return hn::IfThenElseZero(hn::Gt(x, lowest), result);
}

// NaN if a logit is NaN or +infinity.
float MaxLogit(const float* logits, int64_t size) {
  const FloatTag d;
  const auto infinity = hn::Set(d, kInfinity);
  auto max = hn::Set(d, -kInfinity);
  auto all_good = hn::Eq(max, max);
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) {
    const auto x = hn::LoadU(d, logits + i);
    all_good = hn::And(all_good, hn::Lt(x, infinity));  // which is not true of NaN
    max = hn::Max(max, x);
  }
  bool is_good = hn::AllTrue(d, all_good);
  float result = hn::ReduceMax(d, max);
  for (; i < size; ++i) {
    is_good &= logits[i] < kInfinity;
    result = logits[i] > result ? logits[i] : result;
  }
  return is_good ? result : std::numeric_limits<float>::quiet_NaN();
}

// The first index of `value`, which is there.
int64_t IndexOf(float value, const float* values, int64_t size) {
  const FloatTag d;
  const auto wanted = hn::Set(d, value);
  int64_t i = 0;
  while (i + kLanes <= size && hn::AllFalse(d, hn::Eq(hn::LoadU(d, values + i), wanted))) i += kLanes;
  while (values[i] != value) ++i;
  return i;
}

void ComputeWeights(const float* logits, float max_logit, float temperature, float min_weight, float* weights,
                    int64_t size) {
  const FloatTag d;
  const auto max = hn::Set(d, max_logit);
  const auto divisor = hn::Set(d, temperature);
  const auto least = hn::Set(d, min_weight);
  const auto weights_of = [&](FloatVec x) HWY_ATTR {
    // Divided, not multiplied by the inverse: that overflows for the smallest temperatures.
    const auto all = ExpNonPositive(hn::Div(hn::Sub(x, max), divisor));
    return hn::IfThenElseZero(hn::Ge(all, least), all);
  };
  int64_t i = 0;
  for (; i + kLanes <= size; i += kLanes) hn::StoreU(weights_of(hn::LoadU(d, logits + i)), d, weights + i);
  if (i < size) hn::StoreN(weights_of(hn::LoadN(d, logits + i, size - i)), d, weights + i, size - i);
}

// Those from `first_equal` on that are no more than `least`, and before it those that are less, become 0.
void DropWorse(float least, int64_t first_equal, float* weights, int64_t size) {
  const FloatTag d;
  const auto bound = hn::Set(d, least);
  int64_t i = 0;
  for (; i + kLanes <= first_equal; i += kLanes) {
    const auto x = hn::LoadU(d, weights + i);
    hn::StoreU(hn::IfThenElseZero(hn::Ge(x, bound), x), d, weights + i);
  }
  for (; i < first_equal; ++i) weights[i] = weights[i] >= least ? weights[i] : 0.0F;
  for (; i + kLanes <= size; i += kLanes) {
    const auto x = hn::LoadU(d, weights + i);
    hn::StoreU(hn::IfThenElseZero(hn::Gt(x, bound), x), d, weights + i);
  }
  for (; i < size; ++i) weights[i] = weights[i] > least ? weights[i] : 0.0F;
}

// The sum of term_of(value) over all values, in double precision: value i is added to sum i % kSums, and these one
// after the other.
template <typename TermOf>
HWY_INLINE double SumOf(const float* values, int64_t size, TermOf term_of) {
  const FloatTag d;
  const HalfTag dh;
  const DoubleTag dd;
  DoubleVec sums[2 * kVecsOfSums];
  for (auto& sum : sums) sum = hn::Zero(dd);
  int64_t i = 0;
  for (; i + kSums <= size; i += kSums) {
#pragma GCC unroll 4
    for (int v = 0; v < kVecsOfSums; ++v) {
      const auto terms = term_of(hn::LoadU(d, values + i + v * kLanes));
      sums[2 * v] = hn::Add(sums[2 * v], hn::PromoteTo(dd, hn::LowerHalf(dh, terms)));
      sums[2 * v + 1] = hn::Add(sums[2 * v + 1], hn::PromoteTo(dd, hn::UpperHalf(dh, terms)));
    }
  }
  std::array<double, kSums> single;
  for (int v = 0; v < 2 * kVecsOfSums; ++v) hn::StoreU(sums[v], dd, single.data() + v * kLanes / 2);
  for (; i < size; ++i) single[i % kSums] += hn::GetLane(term_of(hn::Set(d, values[i])));
  double total = 0;
  for (const double sum : single) total += sum;
  return total;
}

double Sum(const float* values, int64_t size) {
  return SumOf(values, size, [](FloatVec x) HWY_ATTR { return x; });
}

double SumOfAtLeast(const float* values, float least, int64_t size) {
  const auto bound = hn::Set(FloatTag(), least);
  return SumOf(values, size, [bound](FloatVec x) HWY_ATTR { return hn::IfThenElseZero(hn::Ge(x, bound), x); });
}

double SumOfExp(const float* logits, float max_logit, int64_t size) {
  const auto max = hn::Set(FloatTag(), max_logit);
  return SumOf(logits, size, [max](FloatVec x) HWY_ATTR { return ExpNonPositive(hn::Sub(x, max)); });
}

void BlockSums(const float* values, int64_t size, int64_t block_size, double* sums) {
  for (int64_t begin = 0; begin < size; begin += block_size) {
    *sums++ = Sum(values + begin, begin + block_size < size ? block_size : size - begin);
  }
}

void BlockMaxima(const float* values, int64_t size, int64_t block_size, float* maxima) {
  const FloatTag d;
  for (int64_t begin = 0; begin < size; begin += block_size) {
    const int64_t end = begin + block_size < size ? begin + block_size : size;
    auto max = hn::Set(d, -kInfinity);
    int64_t i = begin;
    for (; i + kLanes <= end; i += kLanes) max = hn::Max(max, hn::LoadU(d, values + i));
    float result = hn::ReduceMax(d, max);
    for (; i < end; ++i) result = values[i] > result ? values[i] : result;
    *maxima++ = result;
  }
}

}  // namespace quire::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace quire {
namespace {

HWY_EXPORT(MaxLogit);
HWY_EXPORT(IndexOf);
HWY_EXPORT(ComputeWeights);
HWY_EXPORT(DropWorse);
HWY_EXPORT(SumOfExp);
HWY_EXPORT(Sum);
HWY_EXPORT(SumOfAtLeast);
HWY_EXPORT(BlockMaxima);
HWY_EXPORT(BlockSums);

int64_t SizeOf(std::span<const float> values) { return static_cast<int64_t>(values.size()); }

}  // namespace

absl::StatusOr<BestLogit> FindBestLogit(std::span<const float> logits) {
  const float max_logit = HWY_DYNAMIC_DISPATCH(MaxLogit)(logits.data(), SizeOf(logits));
  if (std::isnan(max_logit)) return absl::InternalError("the model's logits hold NaN or infinity");
  if (std::isinf(max_logit)) return absl::InternalError("no token is possible: all logits are -infinity");
  const int64_t index = HWY_DYNAMIC_DISPATCH(IndexOf)(max_logit, logits.data(), SizeOf(logits));
  return BestLogit{static_cast<TokenId>(index), max_logit};
}

void ComputeWeights(std::span<const float> logits, float max_logit, float temperature, float min_weight,
                    std::span<float> weights) {
  HWY_DYNAMIC_DISPATCH(ComputeWeights)
  (logits.data(), max_logit, temperature, min_weight, weights.data(), SizeOf(logits));
}

void DropWorse(const Candidate& worst_kept, std::span<float> weights) {
  HWY_DYNAMIC_DISPATCH(DropWorse)
  (worst_kept.value, worst_kept.token_id + 1, weights.data(), SizeOf(weights));
}

double LogSumExp(std::span<const float> logits, float max_logit) {
  return max_logit + std::log(HWY_DYNAMIC_DISPATCH(SumOfExp)(logits.data(), max_logit, SizeOf(logits)));
}

double Sum(std::span<const float> values) { return HWY_DYNAMIC_DISPATCH(Sum)(values.data(), SizeOf(values)); }

double SumOfAtLeast(std::span<const float> values, float least) {
  return HWY_DYNAMIC_DISPATCH(SumOfAtLeast)(values.data(), least, SizeOf(values));
}

void BlockMaxima(std::span<const float> values, int64_t block_size, std::span<float> maxima) {
  QUIRE_DCHECK(static_cast<int64_t>(maxima.size()) == CeilDiv(SizeOf(values), block_size));
  HWY_DYNAMIC_DISPATCH(BlockMaxima)(values.data(), SizeOf(values), block_size, maxima.data());
}

void BlockSums(std::span<const float> values, int64_t block_size, std::span<double> sums) {
  QUIRE_DCHECK(static_cast<int64_t>(sums.size()) == CeilDiv(SizeOf(values), block_size));
  HWY_DYNAMIC_DISPATCH(BlockSums)(values.data(), SizeOf(values), block_size, sums.data());
}

}  // namespace quire
#endif  // HWY_ONCE
