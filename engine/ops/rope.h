#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/ops/parallel.h"
#include "engine/tensor/buffer.h"

namespace quire {

// Which elements of a head rotate together: (2i, 2i + 1), or (i, i + rotary_dim / 2).
enum class RopeStyle { kAdjacentPairs, kHalves };

struct RopeConfig {
  int64_t rotary_dim = 0;  // even, the first elements of each head; the others stay
  double theta = 10000.0;
  RopeStyle style = RopeStyle::kAdjacentPairs;
  std::vector<float> frequency_factors;  // each frequency is divided by its own; empty: by 1 // [rotary_dim / 2]
};

// Rotary position embedding: pair i at position p turns by p * theta^(-2i / rotary_dim). Angles of a step's tokens are
// computed once, in double precision, and shared by all layers.
// Source: Su et al., "RoFormer: Enhanced Transformer with Rotary Position Embedding", 2021.
class Rope {
 public:
  Rope(const RopeConfig& config, int64_t max_tokens);
  static int64_t BytesFor(const RopeConfig& config, int64_t max_tokens);

  // Prepares Rotate for tokens at `positions`, at most max_tokens.
  void SetPositions(Worker& worker, std::span<const int64_t> positions);

  // Rotates one head of the token at index `token`, in place. // [>= rotary_dim]
  void Rotate(int64_t token, float* head) const;

 private:
  RopeStyle style_;
  int64_t num_pairs_;
  std::vector<double> frequencies_;  // [num_pairs], radians per position
  Buffer cosines_;                   // [max_tokens, num_pairs]
  Buffer sines_;                     // [max_tokens, num_pairs]
};

}  // namespace quire
