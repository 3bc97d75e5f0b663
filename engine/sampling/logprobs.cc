#include "engine/sampling/logprobs.h"

#include <algorithm>
#include <span>

#include "engine/sampling/candidates.h"
#include "engine/sampling/vocabulary_passes.h"

namespace quire {

absl::StatusOr<PositionLogprobs> ComputeLogprobs(std::span<const float> logits, TokenId chosen, int32_t num_top,
                                                 SamplingScratch* scratch) {
  const auto best = FindBestLogit(logits);
  if (!best.ok()) return best.status();
  const double log_sum = LogSumExp(logits, best->logit);
  const auto logprob_of = [log_sum](float logit) { return static_cast<float>(logit - log_sum); };
  PositionLogprobs result;
  result.chosen = {chosen, logprob_of(logits[chosen])};
  if (num_top == 0) return result;
  const std::span<Candidate> best_first = scratch->selector.TopK(logits, num_top);
  std::ranges::sort(best_first, IsBetter);
  result.top.reserve(best_first.size());
  for (const Candidate& candidate : best_first) {
    result.top.push_back({candidate.token_id, logprob_of(candidate.value)});
  }
  return result;
}

}  // namespace quire
