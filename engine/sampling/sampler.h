#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/generation_types.h"
#include "engine/base/token_constraint.h"
#include "engine/sampling/candidates.h"

namespace quire {

// Working memory for one request at a time. Made for the vocabulary once; steps do not allocate.
struct SamplingScratch {
  explicit SamplingScratch(int64_t vocab_size);
  // What one takes, for the memory sum.
  static int64_t BytesFor(int64_t vocab_size);

  std::vector<float> logits;       // [vocab_size], after penalty and mask
  std::vector<float> weights;      // [vocab_size], unnormalized probabilities
  std::vector<double> block_sums;  // of weights
  CandidateSelector selector;
  std::vector<uint32_t> mask;  // [ceil(vocab_size / 32)], of a constraint
};

// Chooses one request's tokens. Order of operations: constraint, repetition penalty, temperature, min_p, top_k,
// top_p (over what the former left), draw. Greedy (temperature 0) takes the largest logit, of equals the lowest id.
// Holds nothing that a preemption would lose: draws are indexed by output position.
class Sampler {
 public:
  // `params` must be valid. `seed` names the stream of random numbers, whether params has one or it was drawn.
  Sampler(const SamplingParams& params, uint64_t seed, int64_t vocab_size);
  // What one takes beside its own size.
  static int64_t StateBytesFor(int64_t vocab_size);

  // `tokens` are the request's prompt and output so far, which only grow from call to call; `output_index` is the
  // position of the new token among the output tokens; `constraint` may be null, and is not told what was chosen.
  // INTERNAL if the logits hold NaN or infinity or leave no token.
  absl::StatusOr<TokenId> Sample(std::span<const float> logits, std::span<const TokenId> tokens, int64_t output_index,
                                 TokenConstraint* constraint, SamplingScratch* scratch);

 private:
  void MarkSeen(std::span<const TokenId> tokens);
  void PenalizeSeen(std::span<float> logits) const;
  // Sets the weights that top_k and top_p drop to 0.
  void DropUnlikely(SamplingScratch* scratch) const;

  float temperature_;
  int32_t top_k_;
  float top_p_;
  float min_p_;
  float repetition_penalty_;
  uint64_t seed_;
  std::vector<uint64_t> seen_;    // bit t % 64 of word t / 64: token t stands in prompt or output; only for a penalty
  size_t num_marked_tokens_ = 0;  // of `tokens`, already in seen_
};

}  // namespace quire
