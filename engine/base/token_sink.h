#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/generation_types.h"

namespace quire {

struct GenerationTimings {
  double queue_seconds = 0;                // arrival to first scheduled
  double time_to_first_token_seconds = 0;  // arrival to first output token; 0 if none
  double total_seconds = 0;                // arrival to end
};

// How a request ended, and what it cost.
struct GenerationResult {
  absl::Status status;  // OK exactly when finish_reason is set
  FinishReason finish_reason = FinishReason::kUnspecified;
  int64_t num_prompt_tokens = 0;
  int64_t num_output_tokens = 0;
  int64_t num_cached_prompt_tokens = 0;
  int64_t num_preemptions = 0;
  GenerationTimings timings;
};

// Where a request's tokens go. All calls come from the engine's thread, in order, and must return at
// once: an implementation hands its argument on and never waits for a reader. OnFinish comes exactly once,
// last, for every request that the engine accepted, whatever its end.
class TokenSink {
 public:
  virtual ~TokenSink() = default;

  // Log-probabilities of prompt tokens [1, num_prompt_tokens), in one or more pieces; only if asked.
  virtual void OnPromptLogprobs(std::vector<PositionLogprobs> logprobs) = 0;

  // Output tokens of one step, at least one.
  virtual void OnTokens(std::vector<OutputToken> tokens) = 0;

  virtual void OnFinish(const GenerationResult& result) = 0;
};

}  // namespace quire
