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

// Puts the `k` best of `values` into `selected`, in no order; all of them if there are fewer. k >= 1. Neither sorts
// nor, once the vectors have grown, allocates. Values must not be NaN.
void SelectTopK(std::span<const float> values, int64_t k, std::vector<float>* block_maxima,
                std::vector<Candidate>* selected);

// The size of the smallest head of `candidates`, best first, whose values sum up to at least `mass`; at least 1, all
// if the sum of all is less. Moves that head to the front, in no order. `candidates` is not empty; linear time is
// expected.
int64_t PartitionByMass(std::span<Candidate> candidates, double mass);

}  // namespace quire
