#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/base/ids.h"

namespace quire {

// How a request's tokens are chosen and when it ends. Validated once, by ValidateSamplingParams.
struct SamplingParams {
  float temperature = 1.0F;               // >= 0; 0 is greedy
  int32_t top_k = 0;                      // >= 0; 0 keeps all
  float top_p = 1.0F;                     // in (0, 1]
  float min_p = 0.0F;                     // in [0, 1]
  float repetition_penalty = 1.0F;        // > 0; 1 is none
  std::optional<uint64_t> seed;           // unset: one is drawn
  std::optional<int64_t> max_tokens;      // >= 1; unset: what fits in max_model_len
  std::vector<std::string> stop_strings;  // applied by the text layer
  std::vector<TokenId> stop_token_ids;
  bool ignore_eos = false;
  std::optional<int32_t> num_logprobs;         // top-k log-probabilities of each output token, in [0, kMaxLogprobs]
  std::optional<int32_t> num_prompt_logprobs;  // the same for each prompt token but the first
};

inline constexpr int32_t kMaxLogprobs = 20;

// Why a request ended with OK. Ends that are a status (cancelled, deadline) have none.
enum class FinishReason { kUnspecified, kStopToken, kStopString, kLength };

constexpr std::string_view ToString(FinishReason reason) {
  switch (reason) {
    case FinishReason::kStopToken: return "stop_token";
    case FinishReason::kStopString: return "stop_string";
    case FinishReason::kLength: return "length";
    case FinishReason::kUnspecified: break;
  }
  return "unspecified";
}

struct TokenLogprob {
  TokenId token_id = 0;
  float logprob = 0.0F;  // natural logarithm, of the model's distribution before sampling parameters
};

// The log-probability of one token at its place, and the best alternatives there, best first.
struct PositionLogprobs {
  TokenLogprob chosen;
  std::vector<TokenLogprob> top;
};

// A token that the engine sampled; `logprobs` only if asked.
struct OutputToken {
  TokenId token_id = 0;
  std::optional<PositionLogprobs> logprobs;
};

}  // namespace quire
