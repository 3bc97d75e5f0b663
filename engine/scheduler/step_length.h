#pragma once

#include <cstdint>
#include <optional>

namespace quire {

// How many tokens of prefill a step may take while others decode, so that those get their next token in time. Follows
// what steps take: shorter at once after a step that took too long, longer by and by while steps are short.
class StepLength {
 public:
  // `max_tokens` of a step. Without a target a step always gets them all.
  StepLength(int64_t max_tokens, std::optional<double> target_seconds);

  // In [kLeastTokens, max_tokens], or max_tokens if that is less.
  int64_t num_prefill_tokens() const { return num_prefill_tokens_; }

  // What a step took, with `num_prefill_tokens` beside decodes or alone.
  void Observe(int64_t num_prefill_tokens, double seconds);

  // What the next step may take, by the slowest of the last ones; 0 before any.
  double predicted_seconds() const { return predicted_seconds_; }

  // Prompts must advance where decoding alone takes as long as the target, and fewer rows compute hardly faster.
  static constexpr int64_t kLeastTokens = 64;

 private:
  int64_t max_tokens_;
  std::optional<double> target_seconds_;
  int64_t num_prefill_tokens_;
  double predicted_seconds_ = 0;
};

}  // namespace quire
