#include "bench/divergence.h"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <vector>

#include "bench/percentile.h"

namespace quire::testing {
namespace {

using Catch::Approx;

// Logits of a distribution, moved by any constant.
std::vector<float> LogitsOf(const std::vector<double>& probabilities, double shift) {
  std::vector<float> logits;
  for (const double probability : probabilities) logits.push_back(static_cast<float>(std::log(probability) + shift));
  return logits;
}

}  // namespace

TEST_CASE("Divergence of known distributions", "[bench]") {
  Divergence divergence;
  // KL = 0.5 ln(0.5 / 0.25) + 0.25 ln(0.25 / 0.5) + 0 = 0.25 ln 2; another top-1; next token 1.
  divergence.AddRow(LogitsOf({0.5, 0.25, 0.25}, 3), LogitsOf({0.25, 0.5, 0.25}, -20), 1);
  // Equal but for the shift; next token 0.
  divergence.AddRow(LogitsOf({0.8, 0.1, 0.1}, 0), LogitsOf({0.8, 0.1, 0.1}, 7), 0);
  const DivergenceFigures figures = divergence.Figures();
  CHECK(figures.num_rows == 2);
  CHECK(figures.mean_kl == Approx(0.125 * std::log(2.0)).epsilon(1e-5));
  CHECK(figures.max_kl == Approx(0.25 * std::log(2.0)).epsilon(1e-5));
  CHECK(figures.p99_kl == Approx(0.99 * 0.25 * std::log(2.0)).epsilon(1e-4));
  CHECK(figures.same_top1 == 0.5);
  CHECK(figures.reference_perplexity == Approx(1 / std::sqrt(0.25 * 0.8)).epsilon(1e-5));
  CHECK(figures.tested_perplexity == Approx(1 / std::sqrt(0.5 * 0.8)).epsilon(1e-5));
  CHECK(figures.perplexity_ratio() == Approx(std::sqrt(0.5)).epsilon(1e-5));
}

TEST_CASE("Divergence ignores what the reference excludes", "[bench]") {
  constexpr float kNever = -INFINITY;
  Divergence divergence;
  divergence.AddRow(std::vector<float>{0, kNever, 0}, std::vector<float>{0, kNever, 0}, 0);
  CHECK(divergence.Figures().mean_kl == Approx(0).margin(1e-12));
  CHECK(divergence.Figures().reference_perplexity == Approx(2));
}

TEST_CASE("Divergence is infinite where only the tested model excludes", "[bench]") {
  Divergence divergence;
  divergence.AddRow(std::vector<float>{0, 0}, std::vector<float>{0, -INFINITY}, 0);
  CHECK(std::isinf(divergence.Figures().mean_kl));
}

TEST_CASE("Percentile interpolates between neighbours", "[bench]") {
  CHECK(Percentile({7}, 0.99) == 7);
  CHECK(Percentile({3, 1, 2}, 0) == 1);
  CHECK(Percentile({3, 1, 2}, 1) == 3);
  CHECK(Percentile({3, 1, 2}, 0.5) == 2);
  CHECK(Percentile({10, 20}, 0.25) == Approx(12.5));
  CHECK(Median({4, 1, 3, 2}) == Approx(2.5));
}

}  // namespace quire::testing
