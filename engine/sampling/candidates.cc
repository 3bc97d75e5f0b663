#include "engine/sampling/candidates.h"

#include <algorithm>
#include <functional>
#include <limits>

#include "engine/base/math.h"
#include "engine/sampling/vocabulary_passes.h"

namespace quire {
namespace {

constexpr int64_t kBlockSize = 64;

int64_t NumBlocks(int64_t num_values) { return CeilDiv(num_values, kBlockSize); }

}  // namespace

CandidateSelector::CandidateSelector(int64_t vocab_size) {
  block_maxima_.reserve(NumBlocks(vocab_size));
  ranked_maxima_.reserve(NumBlocks(vocab_size));
  selected_.reserve(vocab_size);
}

int64_t CandidateSelector::BytesFor(int64_t vocab_size) {
  return 2 * NumBlocks(vocab_size) * static_cast<int64_t>(sizeof(float)) +
         vocab_size * static_cast<int64_t>(sizeof(Candidate));
}

void CandidateSelector::FindMaxima(std::span<const float> values) {
  block_maxima_.resize(NumBlocks(static_cast<int64_t>(values.size())));
  BlockMaxima(values, kBlockSize, block_maxima_);
}

// k blocks have maxima as large as the k-th largest maximum.
float CandidateSelector::LowerBoundOfKth(int64_t k) {
  ranked_maxima_ = block_maxima_;
  const auto kth = ranked_maxima_.begin() + (k - 1);
  std::nth_element(ranked_maxima_.begin(), kth, ranked_maxima_.end(), std::greater<>());
  return *kth;
}

void CandidateSelector::Collect(std::span<const float> values, float least) {
  selected_.clear();
  for (size_t block = 0; block < block_maxima_.size(); ++block) {
    if (block_maxima_[block] < least) continue;
    const size_t begin = block * kBlockSize;
    const size_t end = std::min(begin + kBlockSize, values.size());
    for (size_t i = begin; i < end; ++i) {
      if (values[i] >= least) selected_.push_back({values[i], static_cast<TokenId>(i)});
    }
  }
}

std::span<Candidate> CandidateSelector::TopK(std::span<const float> values, int64_t k) {
  FindMaxima(values);
  // With fewer blocks than k their maxima are no bound.
  const bool is_bounded = k <= static_cast<int64_t>(block_maxima_.size());
  Collect(values, is_bounded ? LowerBoundOfKth(k) : -std::numeric_limits<float>::infinity());
  if (k < static_cast<int64_t>(selected_.size())) {
    std::nth_element(selected_.begin(), selected_.begin() + (k - 1), selected_.end(), IsBetter);
    selected_.resize(k);
  }
  return selected_;
}

std::span<Candidate> CandidateSelector::AtLeast(std::span<const float> values, float least) {
  FindMaxima(values);
  Collect(values, least);
  return selected_;
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
