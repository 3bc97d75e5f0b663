#include "engine/sampling/sampler.h"

#include <algorithm>
#include <bit>
#include <limits>

#include "engine/base/check.h"
#include "engine/base/math.h"
#include "engine/sampling/rng.h"
#include "engine/sampling/softmax.h"

namespace quire {
namespace {

constexpr int64_t kMaximaBlockSize = 64;
constexpr int64_t kDrawBlockSize = 256;

void MaskLogits(std::span<const uint32_t> mask, std::span<float> logits) {
  for (size_t i = 0; i < logits.size(); ++i) {
    const bool allowed = ((mask[i / 32] >> (i % 32)) & 1U) != 0;
    logits[i] = allowed ? logits[i] : -std::numeric_limits<float>::infinity();
  }
}

// Keeps the weights of `worst_kept` and of candidates better than it.
void KeepUpTo(const Candidate& worst_kept, std::span<float> weights) {
  for (size_t i = 0; i < weights.size(); ++i) {
    const bool kept = !IsBetter(worst_kept, {weights[i], static_cast<TokenId>(i)});
    weights[i] = kept ? weights[i] : 0.0F;
  }
}

// The token at which the running sum of weights, in order of ids, passes `uniform` of the whole. Sums go by blocks,
// both here and for the whole, so that rounding can't carry the target past the end.
TokenId DrawByWeight(std::span<const float> weights, double uniform) {
  const auto block_at = [&](size_t begin) {
    return weights.subspan(begin, std::min<size_t>(kDrawBlockSize, weights.size() - begin));
  };
  double total = 0;
  for (size_t begin = 0; begin < weights.size(); begin += kDrawBlockSize) total += Sum(block_at(begin));
  const double target = uniform * total;
  double passed = 0;
  TokenId last_possible = 0;
  for (size_t begin = 0; begin < weights.size(); begin += kDrawBlockSize) {
    const std::span<const float> block = block_at(begin);
    const double block_sum = Sum(block);
    if (block_sum == 0 || passed + block_sum <= target) {
      passed += block_sum;
      continue;
    }
    for (size_t i = 0; i < block.size(); ++i) {
      if (block[i] == 0.0F) continue;
      last_possible = static_cast<TokenId>(begin + i);
      passed += block[i];
      if (passed > target) break;
    }
    break;
  }
  return last_possible;
}

}  // namespace

SamplingScratch::SamplingScratch(int64_t vocab_size)
    : logits(vocab_size), weights(vocab_size), mask(CeilDiv<int64_t>(vocab_size, 32)) {
  block_maxima.reserve(CeilDiv(vocab_size, kMaximaBlockSize));
  candidates.reserve(vocab_size);
}

int64_t SamplingScratch::BytesFor(int64_t vocab_size) {
  return static_cast<int64_t>(vocab_size * (2 * sizeof(float) + sizeof(Candidate)) +
                              CeilDiv(vocab_size, kMaximaBlockSize) * sizeof(float) +
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
  std::vector<Candidate>& candidates = scratch->candidates;
  const bool limits_count = top_k_ > 0 && top_k_ < vocab_size;
  const bool limits_mass = top_p_ < 1.0F;
  if (!limits_count && !limits_mass) return;
  double kept_mass = 0;
  if (limits_count) {
    SelectTopK(weights, top_k_, &scratch->block_maxima, &candidates);
    for (const Candidate& candidate : candidates) kept_mass += candidate.value;
  } else {
    kept_mass = Sum(weights);
    // All tokens below this together weigh less than what top_p drops, so none of them is in the head.
    const auto least = static_cast<float>((1.0 - top_p_) * kept_mass / static_cast<double>(vocab_size) * 0.999);
    candidates.clear();
    for (int64_t i = 0; i < vocab_size; ++i) {
      if (weights[i] > 0.0F && weights[i] >= least) candidates.push_back({weights[i], static_cast<TokenId>(i)});
    }
  }
  int64_t num_kept = static_cast<int64_t>(candidates.size());
  if (limits_mass) num_kept = PartitionByMass(candidates, top_p_ * kept_mass);
  KeepUpTo(*std::max_element(candidates.begin(), candidates.begin() + num_kept, IsBetter), weights);
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
  return DrawByWeight(scratch->weights, RandomUniform(seed_, static_cast<uint64_t>(output_index)));
}

}  // namespace quire
