#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "engine/base/ids.h"
#include "engine/sampling/candidates.h"

namespace quire {

// Whole-vocabulary passes in loops that compilers vectorize without relaxed floating-point rules. Results do not
// depend on the machine's instruction set.

// The largest logit and the lowest token that has it. INTERNAL if a logit is NaN or +infinity, or if all are
// -infinity (which marks a token that must not be chosen).
struct BestLogit {
  TokenId token_id = 0;
  float logit = 0.0F;
};
absl::StatusOr<BestLogit> FindBestLogit(std::span<const float> logits);  // [vocab_size]

// weights[i] = exp((logits[i] - max_logit) / temperature), or 0 where that is below `min_weight`. max_logit is the
// largest logit, so weights are in [0, 1]; temperature > 0.
void ComputeWeights(std::span<const float> logits, float max_logit, float temperature, float min_weight,
                    std::span<float> weights);  // both [vocab_size]

// Sets weights that are worse than `worst_kept` to 0.
void DropWorse(const Candidate& worst_kept, std::span<float> weights);

// The natural logarithm of sum(exp(logits)); max_logit is the largest of them.
double LogSumExp(std::span<const float> logits, float max_logit);

// The sum in double precision, of all values or of those that are not below `least`.
double Sum(std::span<const float> values);
double SumOfAtLeast(std::span<const float> values, float least);

// The largest value and the sum in double precision of each `block_size` neighbours, the last ones maybe fewer.
void BlockMaxima(std::span<const float> values, int64_t block_size, std::span<float> maxima);
void BlockSums(std::span<const float> values, int64_t block_size, std::span<double> sums);

}  // namespace quire
