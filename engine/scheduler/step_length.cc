#include "engine/scheduler/step_length.h"

#include <algorithm>

namespace quire {
namespace {

// A slow step is remembered for some hundred others.
constexpr double kForgetting = 0.99;
constexpr double kMostGrowth = 1.25;
// Growing only below this share of the target keeps the length from swinging around it.
constexpr double kRoomToGrow = 0.8;

}  // namespace

StepLength::StepLength(int64_t max_tokens, std::optional<double> target_seconds)
    : max_tokens_(max_tokens), target_seconds_(target_seconds), num_prefill_tokens_(max_tokens) {}

void StepLength::Observe(int64_t num_prefill_tokens, double seconds) {
  predicted_seconds_ = std::max(seconds, predicted_seconds_ * kForgetting);
  if (!target_seconds_ || seconds <= 0 || num_prefill_tokens == 0) return;
  const double share = *target_seconds_ / seconds;
  const double length = static_cast<double>(num_prefill_tokens);
  int64_t next = num_prefill_tokens_;
  if (share < 1) {
    // What took too long, scaled down to the target; by half at most, as one slow step may be the machine's hiccup.
    next = std::max(next / 2, std::min(next, static_cast<int64_t>(length * share)));
  } else if (share * kRoomToGrow > 1) {
    // A short step says that a longer one fits, as far as it can be told from its own length.
    next = std::max(next, static_cast<int64_t>(length * std::min(share * kRoomToGrow, kMostGrowth)) + 1);
  }
  num_prefill_tokens_ = std::clamp(next, std::min(kLeastTokens, max_tokens_), max_tokens_);
}

}  // namespace quire
