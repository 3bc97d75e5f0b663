#include "engine/sampling/candidates.h"

#include <algorithm>
#include <functional>

#include "engine/base/math.h"

namespace quire {
namespace {

constexpr int64_t kBlockSize = 64;

// A value that at least k of `values` reach: k blocks have maxima as large as the k-th largest block maximum. With
// k larger than the number of blocks that says nothing, and the smallest maximum is no bound.
float LowerBoundOfKth(std::span<const float> values, int64_t k, std::vector<float>* block_maxima) {
  const auto size = static_cast<int64_t>(values.size());
  block_maxima->clear();
  for (int64_t begin = 0; begin < size; begin += kBlockSize) {
    const int64_t end = std::min(begin + kBlockSize, size);
    float best = values[begin];
    for (int64_t i = begin + 1; i < end; ++i) best = values[i] > best ? values[i] : best;
    block_maxima->push_back(best);
  }
  const auto kth = block_maxima->begin() + (k - 1);
  std::nth_element(block_maxima->begin(), kth, block_maxima->end(), std::greater<>());
  return *kth;
}

}  // namespace

void SelectTopK(std::span<const float> values, int64_t k, std::vector<float>* block_maxima,
                std::vector<Candidate>* selected) {
  const auto size = static_cast<int64_t>(values.size());
  selected->clear();
  const bool bounded = k <= CeilDiv(size, kBlockSize);
  const float bound = bounded ? LowerBoundOfKth(values, k, block_maxima) : 0.0F;
  for (int64_t i = 0; i < size; ++i) {
    if (!bounded || values[i] >= bound) selected->push_back({values[i], static_cast<TokenId>(i)});
  }
  if (k >= static_cast<int64_t>(selected->size())) return;
  std::nth_element(selected->begin(), selected->begin() + (k - 1), selected->end(), IsBetter);
  selected->resize(k);
}

int64_t PartitionByMass(std::span<Candidate> candidates, double mass) {
  // The head ends in [begin, end); what lies before `begin` is in the head and its mass is taken off.
  int64_t begin = 0;
  auto end = static_cast<int64_t>(candidates.size());
  while (end - begin > 1) {
    const int64_t middle = begin + (end - begin) / 2;
    std::nth_element(candidates.begin() + begin, candidates.begin() + (middle - 1), candidates.begin() + end, IsBetter);
    double better_mass = 0;
    for (int64_t i = begin; i < middle; ++i) better_mass += candidates[i].value;
    if (better_mass >= mass) {
      end = middle;
    } else {
      mass -= better_mass;
      begin = middle;
    }
  }
  return end;
}

}  // namespace quire
