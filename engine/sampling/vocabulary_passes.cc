#include "engine/sampling/vocabulary_passes.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/base/check.h"
#include "engine/base/math.h"
#include "engine/base/status.h"

namespace quire {
namespace {

// Independent accumulators, so that a reduction fills vector registers although float addition is not associative.
constexpr int64_t kLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

int64_t SizeOf(std::span<const float> values) { return static_cast<int64_t>(values.size()); }

// `value` or 0, without a branch: compilers do not vectorize loops in which an operation on floats may be left out.
inline float ValueIf(bool condition, float value) {
  return std::bit_cast<float>(std::bit_cast<uint32_t>(value) & (0U - static_cast<uint32_t>(condition)));
}

// exp(x) for x <= 0 within 3e-7 relative; 0 below -87, where float is about to lose precision. The argument is split
// into n ln 2 + r with |r| <= ln 2 / 2; exp(r) is its Taylor polynomial of degree 7, and 2^n is written as bits.
inline float ExpNonPositive(float x) {
  constexpr float kLowest = -87.0F;
  constexpr float kLog2E = 1.44269504F;
  constexpr float kLn2High = 0.693359375F;  // few bits, so that n * kLn2High is exact
  constexpr float kLn2Low = -2.12194440e-4F;
  constexpr float kRoundToInteger = 12582912.0F;  // 1.5 * 2^23: the sum's lowest bit counts ones
  const float clamped = x > kLowest ? x : kLowest;
  const float rounded = clamped * kLog2E + kRoundToInteger;
  const float n = rounded - kRoundToInteger;
  const float r = (clamped - n * kLn2High) - n * kLn2Low;
  float poly = 1.0F / 5040.0F;
  poly = poly * r + 1.0F / 720.0F;
  poly = poly * r + 1.0F / 120.0F;
  poly = poly * r + 1.0F / 24.0F;
  poly = poly * r + 1.0F / 6.0F;
  poly = poly * r + 0.5F;
  poly = poly * r + 1.0F;
  poly = poly * r + 1.0F;
  const uint32_t exponent = std::bit_cast<uint32_t>(rounded) << 23;  // what kRoundToInteger added is shifted out
  return ValueIf(x > kLowest, std::bit_cast<float>(std::bit_cast<uint32_t>(poly) + exponent));
}

// The sum of term_of(value) in double precision: value i is added to sum i % kLanes, and these one after the other.
template <typename TermOf>
double SumOf(std::span<const float> values, TermOf term_of) {
  const int64_t size = SizeOf(values);
  const float* data = values.data();
  std::array<double, kLanes> sums{};
  const int64_t aligned = size - size % kLanes;
  for (int64_t i = 0; i < aligned; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += term_of(data[i + lane]);
  }
  for (int64_t i = aligned; i < size; ++i) sums[i % kLanes] += term_of(data[i]);
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

// -infinity of none.
float Max(std::span<const float> values) {
  const int64_t size = SizeOf(values);
  const float* data = values.data();
  std::array<float, kLanes> best;
  best.fill(-kInfinity);
  const int64_t aligned = size - size % kLanes;
  for (int64_t i = 0; i < aligned; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane)
      best[lane] = data[i + lane] > best[lane] ? data[i + lane] : best[lane];
  }
  for (int64_t i = aligned; i < size; ++i) best[0] = data[i] > best[0] ? data[i] : best[0];
  return *std::ranges::max_element(best);
}

// Whether all are below infinity, which is not true of NaN.
bool AllBelowInfinity(std::span<const float> values) {
  uint32_t num_bad = 0;
  for (const float value : values) num_bad += static_cast<uint32_t>(!(value < kInfinity));
  return num_bad == 0;
}

std::span<const float> BlockAt(std::span<const float> values, size_t block, int64_t block_size) {
  const size_t begin = block * block_size;
  return values.subspan(begin, std::min<size_t>(block_size, values.size() - begin));
}

}  // namespace

absl::StatusOr<BestLogit> FindBestLogit(std::span<const float> logits) {
  if (!AllBelowInfinity(logits)) return absl::InternalError("the model's logits hold NaN or infinity");
  const float max_logit = Max(logits);
  if (max_logit == -kInfinity) return absl::InternalError("no token is possible: all logits are -infinity");
  return BestLogit{static_cast<TokenId>(std::ranges::find(logits, max_logit) - logits.begin()), max_logit};
}

void ComputeWeights(std::span<const float> logits, float max_logit, float temperature, float min_weight,
                    std::span<float> weights) {
  const float* in = logits.data();
  float* out = weights.data();
  for (int64_t i = 0; i < SizeOf(logits); ++i) {
    // Divided, not multiplied by the inverse: that overflows for the smallest temperatures.
    const float weight = ExpNonPositive((in[i] - max_logit) / temperature);
    out[i] = ValueIf(weight >= min_weight, weight);
  }
}

void DropWorse(const Candidate& worst_kept, std::span<float> weights) {
  const auto [least, last_equal] = worst_kept;
  for (TokenId i = 0; i <= last_equal; ++i) weights[i] = ValueIf(weights[i] >= least, weights[i]);
  for (size_t i = last_equal + 1; i < weights.size(); ++i) weights[i] = ValueIf(weights[i] > least, weights[i]);
}

double LogSumExp(std::span<const float> logits, float max_logit) {
  return max_logit + std::log(SumOf(logits, [max_logit](float logit) { return ExpNonPositive(logit - max_logit); }));
}

double Sum(std::span<const float> values) {
  return SumOf(values, [](float value) { return value; });
}

double SumOfAtLeast(std::span<const float> values, float least) {
  return SumOf(values, [least](float value) { return ValueIf(value >= least, value); });
}

void BlockMaxima(std::span<const float> values, int64_t block_size, std::span<float> maxima) {
  QUIRE_DCHECK(static_cast<int64_t>(maxima.size()) == CeilDiv(SizeOf(values), block_size));
  for (size_t block = 0; block < maxima.size(); ++block) maxima[block] = Max(BlockAt(values, block, block_size));
}

void BlockSums(std::span<const float> values, int64_t block_size, std::span<double> sums) {
  QUIRE_DCHECK(static_cast<int64_t>(sums.size()) == CeilDiv(SizeOf(values), block_size));
  for (size_t block = 0; block < sums.size(); ++block) sums[block] = Sum(BlockAt(values, block, block_size));
}

}  // namespace quire
