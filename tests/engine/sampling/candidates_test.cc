#include "engine/sampling/candidates.h"

#include <algorithm>
#include <vector>

#include "catch2/catch_test_macros.hpp"
#include "engine/sampling/rng.h"

namespace quire {
namespace {

// Few distinct values, so that ties occur everywhere.
std::vector<float> RandomValues(int64_t size, uint64_t seed) {
  std::vector<float> values(size);
  for (int64_t i = 0; i < size; ++i) values[i] = static_cast<float>(RandomBits(seed, i) % 50 + 1);
  return values;
}

std::vector<Candidate> Sorted(const std::vector<float>& values) {
  std::vector<Candidate> all;
  for (size_t i = 0; i < values.size(); ++i) all.push_back({values[i], static_cast<TokenId>(i)});
  std::ranges::sort(all, IsBetter);
  return all;
}

std::vector<TokenId> IdsOf(std::vector<Candidate> candidates) {
  std::ranges::sort(candidates, IsBetter);
  std::vector<TokenId> ids;
  for (const Candidate& candidate : candidates) ids.push_back(candidate.token_id);
  return ids;
}

TEST_CASE("the best k are those of a full sort, ties to the lower id") {
  CandidateSelector selector(1000);
  for (const int64_t size : {1, 5, 64, 65, 1000}) {
    const std::vector<float> values = RandomValues(size, 10 + size);
    for (const int64_t k : {1, 2, 15, 16, 17, 64, 999, 1000, 2000}) {
      INFO("size " << size << ", k " << k);
      std::vector<Candidate> expected = Sorted(values);
      expected.resize(std::min<size_t>(expected.size(), k));
      const std::span<Candidate> selected = selector.TopK(values, k);
      CHECK(IdsOf({selected.begin(), selected.end()}) == IdsOf(expected));
    }
  }
}

TEST_CASE("those of at least a value are found in order of ids") {
  CandidateSelector selector(1000);
  for (const int64_t size : {1, 5, 64, 65, 1000}) {
    const std::vector<float> values = RandomValues(size, 20 + size);
    for (const float least : {-1.0F, 1.0F, 25.0F, 50.0F, 51.0F}) {
      INFO("size " << size << ", least " << least);
      std::vector<TokenId> expected;
      for (int64_t i = 0; i < size; ++i) {
        if (values[i] >= least) expected.push_back(static_cast<TokenId>(i));
      }
      std::vector<TokenId> found;
      for (const Candidate& candidate : selector.AtLeast(values, least)) {
        CHECK(candidate.value == values[candidate.token_id]);
        found.push_back(candidate.token_id);
      }
      CHECK(found == expected);
    }
  }
}

TEST_CASE("the head of a mass is the shortest prefix of a full sort that reaches it") {
  for (uint64_t seed = 0; seed < 20; ++seed) {
    const std::vector<float> values = RandomValues(1 + 13 * seed, seed);
    std::vector<Candidate> sorted = Sorted(values);
    double total = 0;
    for (const float value : values) total += value;
    for (const double share : {0.0, 0.01, 0.3, 0.5, 0.9, 0.999, 1.0, 1.1}) {
      INFO("seed " << seed << ", share " << share);
      size_t expected_size = 0;
      double mass = 0;
      do {
        mass += sorted[expected_size++].value;
      } while (mass < share * total && expected_size < sorted.size());
      std::vector<Candidate> candidates = sorted;
      std::ranges::sort(candidates, {}, &Candidate::token_id);
      const int64_t size = PartitionByMass(candidates, share * total);
      REQUIRE(size == static_cast<int64_t>(expected_size));
      CHECK(IdsOf({candidates.begin(), candidates.begin() + size}) == IdsOf({sorted.begin(), sorted.begin() + size}));
    }
  }
}

}  // namespace
}  // namespace quire
