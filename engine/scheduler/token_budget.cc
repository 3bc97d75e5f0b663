#include "engine/scheduler/token_budget.h"

#include <algorithm>

namespace quire {

int64_t NumLogitsRows(const TokenDemand& demand, int64_t num_tokens) {
  return std::max<int64_t>(0, num_tokens - demand.num_rowless_tokens);
}

int64_t TakeTokens(const TokenDemand& demand, TokenBudget* budget) {
  const int64_t num_tokens =
      std::min({demand.num_tokens, budget->num_tokens, demand.num_rowless_tokens + budget->num_logits_rows});
  budget->num_tokens -= num_tokens;
  budget->num_logits_rows -= NumLogitsRows(demand, num_tokens);
  return num_tokens;
}

}  // namespace quire
