#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/base/ids.h"

namespace quire {

// A token with its logit or weight, where some of a vocabulary are chosen.
struct Candidate {
  float value = 0.0F;
  TokenId token_id = 0;
};

// The total order of candidates: the larger value, then the lower id.
constexpr bool IsBetter(const Candidate& a, const Candidate& b) {
  return a.value > b.value || (a.value == b.value && a.token_id < b.token_id);
}

// Chooses candidates out of up to `vocab_size` values, in memory that it takes once. Does not sort. Values must not be
// NaN.
class CandidateSelector {
 public:
  explicit CandidateSelector(int64_t vocab_size);
  static int64_t BytesFor(int64_t vocab_size);

  // The `k` best of `values`, in no order; all of them if there are fewer. k >= 1. Valid until the next call.
  std::span<Candidate> TopK(std::span<const float> values, int64_t k);

  // Those of at least `least`, in order of ids.
  std::span<Candidate> AtLeast(std::span<const float> values, float least);

 private:
  // Sets block_maxima_.
  void FindMaxima(std::span<const float> values);
  // A value that at least k values reach; k is at most the number of blocks.
  float LowerBoundOfKth(int64_t k);
  // Adds those of at least `least`; passes over blocks without any.
  void Collect(std::span<const float> values, float least);

  std::vector<float> block_maxima_;   // [ceil(vocab_size / block)], of the values of the present call
  std::vector<float> ranked_maxima_;  // the same, in another order
  std::vector<Candidate> selected_;   // up to [vocab_size]
};

// The size of the smallest head of `candidates`, best first, whose values sum up to at least `mass`; at least 1, all
// if the sum of all is less. Moves that head to the front, in no order. `candidates` is not empty; linear time is
// expected.
int64_t PartitionByMass(std::span<Candidate> candidates, double mass);

}  // namespace quire
