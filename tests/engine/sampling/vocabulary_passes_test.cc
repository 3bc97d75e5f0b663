#include "engine/sampling/vocabulary_passes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "catch2/catch_test_macros.hpp"
#include "catch2/matchers/catch_matchers_floating_point.hpp"
#include "engine/sampling/rng.h"

namespace quire {
namespace {

using Catch::Matchers::WithinAbs;
using Catch::Matchers::WithinRel;

constexpr float kInfinity = std::numeric_limits<float>::infinity();

std::vector<float> RandomLogits(int64_t size, uint64_t seed) {
  std::vector<float> logits(size);
  for (int64_t i = 0; i < size; ++i) logits[i] = static_cast<float>(RandomUniform(seed, i) * 40.0 - 20.0);
  return logits;
}

TEST_CASE("the best logit is found at every place, whatever the vocabulary's size") {
  for (const int64_t size : {1, 2, 15, 16, 17, 33, 100}) {
    for (int64_t place = 0; place < size; ++place) {
      std::vector<float> logits = RandomLogits(size, 1);
      logits[place] = 21.0F;
      const auto best = FindBestLogit(logits);
      REQUIRE(best.ok());
      CHECK(best->token_id == place);
      CHECK(best->logit == 21.0F);
    }
  }
}

TEST_CASE("of equal logits the lowest id is the best") {
  std::vector<float> logits(40, -1.0F);
  CHECK(FindBestLogit(logits)->token_id == 0);
  logits[35] = logits[18] = 2.0F;
  CHECK(FindBestLogit(logits)->token_id == 18);
}

TEST_CASE("NaN, +infinity and no possible token are INTERNAL at every place") {
  for (int64_t place = 0; place < 37; ++place) {
    std::vector<float> logits = RandomLogits(37, 2);
    logits[place] = std::numeric_limits<float>::quiet_NaN();
    CHECK(FindBestLogit(logits).status().code() == absl::StatusCode::kInternal);
    logits[place] = kInfinity;
    CHECK(FindBestLogit(logits).status().code() == absl::StatusCode::kInternal);
    logits[place] = -kInfinity;
    CHECK(FindBestLogit(logits).ok());
  }
  CHECK(FindBestLogit(std::vector<float>(20, -kInfinity)).status().code() == absl::StatusCode::kInternal);
}

TEST_CASE("weights are exponentials to float's precision") {
  const std::vector<float> logits = RandomLogits(1000, 3);
  const float max_logit = FindBestLogit(logits)->logit;
  for (const float temperature : {0.5F, 1.0F, 3.0F}) {
    std::vector<float> weights(logits.size());
    ComputeWeights(logits, max_logit, temperature, 0.0F, weights);
    for (size_t i = 0; i < logits.size(); ++i) {
      const double expected = std::exp(static_cast<double>((logits[i] - max_logit) / temperature));
      INFO("logit " << logits[i] << ", temperature " << temperature);
      CHECK_THAT(weights[i], WithinRel(expected, 3e-7) || WithinAbs(expected, 1e-37));
    }
  }
}

TEST_CASE("weights of impossible tokens and at the smallest temperature are exact") {
  const std::vector<float> logits = {3.0F, -kInfinity, 3.0F, 2.999F};
  std::vector<float> weights(4);
  ComputeWeights(logits, 3.0F, 1.0F, 0.0F, weights);
  CHECK(weights[0] == 1.0F);
  CHECK(weights[1] == 0.0F);
  ComputeWeights(logits, 3.0F, std::numeric_limits<float>::denorm_min(), 0.0F, weights);
  CHECK(weights == std::vector<float>{1.0F, 0.0F, 1.0F, 0.0F});
}

TEST_CASE("log-sum-exp and sums agree with double precision") {
  for (const int64_t size : {1, 7, 16, 49, 5000}) {
    const std::vector<float> logits = RandomLogits(size, 4);
    double sum = 0;
    double sum_of_at_least = 0;
    double exponentials = 0;
    for (const float logit : logits) {
      sum += logit;
      sum_of_at_least += logit >= 3.0F ? logit : 0;
      exponentials += std::exp(static_cast<double>(logit));
    }
    CHECK_THAT(LogSumExp(logits, FindBestLogit(logits)->logit), WithinAbs(std::log(exponentials), 1e-6));
    CHECK_THAT(Sum(logits), WithinAbs(sum, 1e-9));
    CHECK_THAT(SumOfAtLeast(logits, 3.0F), WithinAbs(sum_of_at_least, 1e-9));
  }
}

TEST_CASE("what is worse than a candidate is dropped, of equals the higher ids") {
  std::vector<float> weights(70, 0.25F);
  weights[3] = 0.125F;
  weights[60] = 0.5F;
  DropWorse({0.25F, 40}, weights);
  for (int i = 0; i < 70; ++i) {
    INFO("token " << i);
    CHECK(weights[i] == (i == 60 ? 0.5F : i == 3 || i > 40 ? 0.0F : 0.25F));
  }
}

TEST_CASE("blocks have the sums and maxima of their values, the last block of fewer") {
  for (const int64_t size : {1, 63, 64, 65, 200}) {
    const std::vector<float> values = RandomLogits(size, 5);
    std::vector<float> maxima((size + 63) / 64);
    std::vector<double> sums(maxima.size());
    BlockMaxima(values, 64, maxima);
    BlockSums(values, 64, sums);
    for (size_t block = 0; block < maxima.size(); ++block) {
      const std::span<const float> part =
          std::span(values).subspan(block * 64, std::min<size_t>(64, values.size() - block * 64));
      CHECK(maxima[block] == *std::ranges::max_element(part));
      CHECK(sums[block] == Sum(part));
    }
  }
}

}  // namespace
}  // namespace quire
