#pragma once

#include <cstdint>

namespace quire {

// What remains of a step for those not served yet.
struct TokenBudget {
  int64_t num_tokens = 0;
  int64_t num_logits_rows = 0;
};

// What a request would compute if the step were its own: its next num_tokens tokens. All but the first
// num_rowless_tokens of them want a row of logits each: the last one alone where only the next token is sampled,
// more where prompt log-probabilities are still to be sent.
struct TokenDemand {
  int64_t num_tokens = 0;          // >= 1
  int64_t num_rowless_tokens = 0;  // in [0, num_tokens)
};

// Rows of logits that the demand's first `num_tokens` want.
int64_t NumLogitsRows(const TokenDemand& demand, int64_t num_tokens);

// How many of the demand's tokens, from its first, fit in what remains of both tokens and rows, and takes them from
// `budget`. Serving demands in order of precedence splits a step among them; 0 leaves the budget as it was.
int64_t TakeTokens(const TokenDemand& demand, TokenBudget* budget);

}  // namespace quire
