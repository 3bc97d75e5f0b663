#include "engine/sampling/softmax.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

#include "engine/base/status.h"

namespace quire {
namespace {

// Independent accumulators, so that a reduction fills vector registers although float addition is not associative.
constexpr int64_t kLanes = 16;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

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
  const uint32_t exponent = std::bit_cast<uint32_t>(rounded) - std::bit_cast<uint32_t>(kRoundToInteger) + 127U;
  const float result = poly * std::bit_cast<float>(exponent << 23);
  return x > kLowest ? result : 0.0F;
}

}  // namespace

absl::StatusOr<BestLogit> FindBestLogit(std::span<const float> logits) {
  const auto size = static_cast<int64_t>(logits.size());
  const float* data = logits.data();
  std::array<float, kLanes> best;
  best.fill(-kInfinity);
  std::array<uint32_t, kLanes> bad{};
  const int64_t aligned = size - size % kLanes;
  for (int64_t i = 0; i < aligned; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) {
      const float x = data[i + lane];
      best[lane] = x > best[lane] ? x : best[lane];
      bad[lane] |= x < kInfinity ? 0U : 1U;  // true of NaN too
    }
  }
  for (int64_t i = aligned; i < size; ++i) {
    best[0] = data[i] > best[0] ? data[i] : best[0];
    bad[0] |= data[i] < kInfinity ? 0U : 1U;
  }
  if (std::ranges::any_of(bad, [](uint32_t lane) { return lane != 0; })) {
    return absl::InternalError("the model's logits hold NaN or infinity");
  }
  const float max_logit = *std::ranges::max_element(best);
  if (max_logit == -kInfinity) return absl::InternalError("no token is possible: all logits are -infinity");
  return BestLogit{static_cast<TokenId>(std::ranges::find(logits, max_logit) - logits.begin()), max_logit};
}

void ComputeWeights(std::span<const float> logits, float max_logit, float temperature, float min_weight,
                    std::span<float> weights) {
  const float* in = logits.data();
  float* out = weights.data();
  const size_t size = logits.size();
  for (size_t i = 0; i < size; ++i) {
    // Divided, not multiplied by the inverse: that overflows for the smallest temperatures.
    const float weight = ExpNonPositive((in[i] - max_logit) / temperature);
    out[i] = weight >= min_weight ? weight : 0.0F;
  }
}

double LogSumExp(std::span<const float> logits, float max_logit) {
  const auto size = static_cast<int64_t>(logits.size());
  std::array<double, kLanes> sums{};
  const int64_t aligned = size - size % kLanes;
  for (int64_t i = 0; i < aligned; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += ExpNonPositive(logits[i + lane] - max_logit);
  }
  for (int64_t i = aligned; i < size; ++i) sums[0] += ExpNonPositive(logits[i] - max_logit);
  double total = 0;
  for (const double sum : sums) total += sum;
  return max_logit + std::log(total);
}

double Sum(std::span<const float> values) {
  const auto size = static_cast<int64_t>(values.size());
  std::array<double, kLanes> sums{};
  const int64_t aligned = size - size % kLanes;
  for (int64_t i = 0; i < aligned; i += kLanes) {
    for (int64_t lane = 0; lane < kLanes; ++lane) sums[lane] += values[i + lane];
  }
  for (int64_t i = aligned; i < size; ++i) sums[0] += values[i];
  double total = 0;
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace quire
