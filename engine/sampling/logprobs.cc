#include "engine/sampling/logprobs.h"

#include <algorithm>

#include "engine/sampling/candidates.h"
#include "engine/sampling/softmax.h"

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
  SelectTopK(logits, num_top, &scratch->block_maxima, &scratch->candidates);
  std::ranges::sort(scratch->candidates, IsBetter);
  result.top.reserve(scratch->candidates.size());
  for (const Candidate& candidate : scratch->candidates) {
    result.top.push_back({candidate.token_id, logprob_of(candidate.value)});
  }
  return result;
}

}  // namespace quire
