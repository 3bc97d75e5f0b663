#include "engine/sampling/sampler.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/base/check.h"
#include "engine/base/math.h"
#include "engine/sampling/rng.h"
#include "engine/sampling/vocabulary_passes.h"

namespace quire {
namespace {

constexpr int64_t kDrawBlockSize = 256;

void MaskLogits(std::span<const uint32_t> mask, std::span<float> logits) {
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool allowed = ((mask[i / 32] >> (i % 32)) & 1U) != 0;
    logits[i] = allowed ? logits[i] : -std::numeric_limits<float>::infinity();
  }
}

// The token at which the running sum of weights, in order of ids, passes `uniform` of the whole. Sums go by blocks,
// both here and for the whole, so that rounding can't carry the target past the end.
TokenId DrawByWeight(std::span<const float> weights, double uniform, std::span<double> block_sums) {
  BlockSums(weights, kDrawBlockSize, block_sums);
  double total = 0;
  for (const double sum : block_sums) total += sum;
  const double target = uniform * total;
  double passed = 0;
  TokenId last_possible = 0;
  for (size_t block = 0; block < block_sums.size(); ++block) {
    if (block_sums[block] == 0 || passed + block_sums[block] <= target) {
      passed += block_sums[block];
      continue;
    }
    const size_t begin = block * kDrawBlockSize;
    const size_t end = std::min(begin + kDrawBlockSize, weights.size());
    for (size_t i = begin; i < end; ++i) {
      if (weights[i] == 0.0F) continue;
      last_possible = static_cast<TokenId>(i);
      passed += weights[i];
      if (passed > target) break;
    }
    break;
  }
  return last_possible;
}

// A weight that no token of the smallest head with top_p of `total_mass` is below, near its least one: a selection
// takes longer than some passes over all weights, of which the largest is 1.
float LowerBoundOfHead(std::span<const float> weights, float top_p, double total_mass) {
  // All tokens below this together weigh less than what top_p drops.
  const double least = (1.0 - top_p) * total_mass / static_cast<double>(weights.size()) * 0.999;
  // Above 0: what min_p has dropped is in no head.
  const float lowest = std::max(static_cast<float>(least), std::numeric_limits<float>::denorm_min());
  float bound = 0.25F;
  while (bound > lowest && SumOfAtLeast(weights, bound) < top_p * total_mass) bound /= 4;
  return std::max(bound, lowest);
}

}  // namespace

SamplingScratch::SamplingScratch(int64_t vocab_size)
    : logits(vocab_size),
      weights(vocab_size),
      block_sums(CeilDiv(vocab_size, kDrawBlockSize)),
      selector(vocab_size),
      mask(CeilDiv<int64_t>(vocab_size, 32)) {}

int64_t SamplingScratch::BytesFor(int64_t vocab_size) {
  return CandidateSelector::BytesFor(vocab_size) +
         static_cast<int64_t>(vocab_size * 2 * sizeof(float) + CeilDiv(vocab_size, kDrawBlockSize) * sizeof(double) +
                              CeilDiv<int64_t>(vocab_size, 32) * sizeof(uint32_t));
}

Sampler::Sampler(const SamplingParams& params, uint64_t seed, int64_t vocab_size)
    : temperature_(params.temperature),
      top_k_(params.top_k),
      top_p_(params.top_p),
      min_p_(params.min_p),
      repetition_penalty_(params.repetition_penalty),
      seed_(seed) {
  if (repetition_penalty_ != 1.0F) seen_.resize(CeilDiv<int64_t>(vocab_size, 64));
}

int64_t Sampler::StateBytesFor(int64_t vocab_size) {
  return CeilDiv<int64_t>(vocab_size, 64) * static_cast<int64_t>(sizeof(uint64_t));
}

void Sampler::MarkSeen(std::span<const TokenId> tokens) {
  for (; num_marked_tokens_ < tokens.size(); ++num_marked_tokens_) {
    const auto token = static_cast<size_t>(tokens[num_marked_tokens_]);
    seen_[token / 64] |= uint64_t{1} << (token % 64);
  }
}

void Sampler::PenalizeSeen(std::span<float> logits) const {
  for (size_t word = 0; word < seen_.size(); ++word) {
    for (uint64_t bits = seen_[word]; bits != 0; bits &= bits - 1) {
      float& logit = logits[word * 64 + std::countr_zero(bits)];
      const float penalized = logit > 0.0F ? logit / repetition_penalty_ : logit * repetition_penalty_;
      // A penalty next to 0 must not look like a broken model.
      logit = std::min(penalized, std::numeric_limits<float>::max());
    }
  }
}

void Sampler::DropUnlikely(SamplingScratch* scratch) const {
  const auto vocab_size = static_cast<int64_t>(scratch->weights.size());
  const std::span<float> weights = scratch->weights;
  const bool limits_count = top_k_ > 0 && top_k_ < vocab_size;
  const bool limits_mass = top_p_ < 1.0F;
  if (!limits_count && !limits_mass) return;
  std::span<Candidate> candidates;
  double kept_mass = 0;
  if (limits_count) {
    candidates = scratch->selector.TopK(weights, top_k_);
    for (const Candidate& candidate : candidates) kept_mass += candidate.value;
  } else {
    kept_mass = Sum(weights);
    candidates = scratch->selector.AtLeast(weights, LowerBoundOfHead(weights, top_p_, kept_mass));
  }
  auto num_kept = static_cast<int64_t>(candidates.size());
  if (limits_mass) num_kept = PartitionByMass(candidates, top_p_ * kept_mass);
  DropWorse(*std::max_element(candidates.begin(), candidates.begin() + num_kept, IsBetter), weights);
}

absl::StatusOr<TokenId> Sampler::Sample(std::span<const float> logits, std::span<const TokenId> tokens,
                                        int64_t output_index, TokenConstraint* constraint, SamplingScratch* scratch) {
  QUIRE_CHECK_EQ(logits.size(), scratch->logits.size());
  const bool penalizes = repetition_penalty_ != 1.0F;
  if (penalizes || constraint != nullptr) {
    std::ranges::copy(logits, scratch->logits.begin());
    if (penalizes) {
      MarkSeen(tokens);
      PenalizeSeen(scratch->logits);
    }
    if (constraint != nullptr) {
      constraint->FillMask(scratch->mask);
      MaskLogits(scratch->mask, scratch->logits);
    }
    logits = scratch->logits;
  }
  auto best = FindBestLogit(logits);
  if (!best.ok()) return best.status();
  if (temperature_ == 0.0F) return best->token_id;
  ComputeWeights(logits, best->logit, temperature_, min_p_, scratch->weights);
  DropUnlikely(scratch);
  return DrawByWeight(scratch->weights, RandomUniform(seed_, static_cast<uint64_t>(output_index)), scratch->block_sums);
}

}  // namespace quire
