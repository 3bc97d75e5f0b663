#include "engine/sampling/rng.h"

#include <array>
#include <set>

#include "catch2/catch_test_macros.hpp"

namespace quire {
namespace {

TEST_CASE("a random number is fixed by its seed and index alone") {
  CHECK(RandomBits(7, 3) == RandomBits(7, 3));
  std::set<uint64_t> seen;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    for (uint64_t index = 0; index < 100; ++index) seen.insert(RandomBits(seed, index));
  }
  // Neighbouring seeds do not name shifted copies of one stream.
  CHECK(seen.size() == 100U * 100U);
}

TEST_CASE("uniform numbers fill the unit interval evenly along indices and along seeds") {
  constexpr int kNumBins = 20;
  constexpr int kNumDraws = 20000;
  std::array<int, kNumBins> by_index{};
  std::array<int, kNumBins> by_seed{};
  for (uint64_t i = 0; i < kNumDraws; ++i) {
    const double a = RandomUniform(42, i);
    const double b = RandomUniform(i, 0);
    REQUIRE((a >= 0.0 && a < 1.0));
    REQUIRE((b >= 0.0 && b < 1.0));
    ++by_index[static_cast<int>(a * kNumBins)];
    ++by_seed[static_cast<int>(b * kNumBins)];
  }
  const auto chi_square = [](const std::array<int, kNumBins>& counts) {
    const double expected = static_cast<double>(kNumDraws) / kNumBins;
    double sum = 0;
    for (const int count : counts) sum += (count - expected) * (count - expected) / expected;
    return sum;
  };
  // 19 degrees of freedom: 43.8 is passed by chance once in a thousand streams.
  CHECK(chi_square(by_index) < 43.8);
  CHECK(chi_square(by_seed) < 43.8);
}

}  // namespace
}  // namespace quire
