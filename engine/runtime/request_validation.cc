#include "engine/runtime/request_validation.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "engine/base/math.h"
#include "engine/base/status.h"
#include "engine/base/strings.h"
#include "engine/sampling/sampling_params.h"

namespace quire {
namespace {

// Tokens that a request may have in all. The last output token is never computed and needs no slot.
int64_t MaxTotalTokens(const EngineLimits& limits) {
  return std::min(limits.max_model_len, limits.num_blocks * limits.block_size + 1);
}

std::string Sizes(int64_t num_stored_tokens, const EngineLimits& limits) {
  const int64_t num_blocks = CeilDiv(num_stored_tokens, limits.block_size);
  return StrCat(num_stored_tokens, " tokens in ", num_blocks, " KV blocks (", num_blocks * limits.bytes_per_block,
                " bytes)");
}

std::string Available(const EngineLimits& limits) {
  return StrCat("; available are ", limits.max_model_len, " tokens (max_model_len) and ", limits.num_blocks,
                " KV blocks (", limits.num_blocks * limits.bytes_per_block, " bytes)");
}

absl::Status ValidatePrompt(std::span<const TokenId> prompt, const EngineLimits& limits) {
  if (prompt.empty()) return InvalidArgument("prompt", "0 tokens", "at least 1 token");
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i] >= 0 && prompt[i] < limits.vocab_size) continue;
    return InvalidArgument(StrCat("token_ids[", i, "]"), prompt[i],
                           StrCat("a token id in [0, ", limits.vocab_size, ")"));
  }
  return absl::OkStatus();
}

absl::Status ValidateSizes(const GenerationRequest& request, const EngineLimits& limits) {
  const auto num_prompt_tokens = static_cast<int64_t>(request.prompt_token_ids.size());
  const int64_t max_total_tokens = MaxTotalTokens(limits);
  if (num_prompt_tokens >= max_total_tokens) {
    return NeverFits("prompt", StrCat("the prompt's ", Sizes(num_prompt_tokens, limits),
                                      " and 1 output token are needed", Available(limits)));
  }
  if (!request.sampling.max_tokens) return absl::OkStatus();
  const int64_t max_tokens = *request.sampling.max_tokens;
  // Compared by difference: the sum of any two numbers may overflow.
  if (max_tokens <= max_total_tokens - num_prompt_tokens) return absl::OkStatus();
  const std::string tokens = StrCat(num_prompt_tokens, " prompt tokens and ", max_tokens, " output tokens");
  constexpr int64_t kCountable = int64_t{1} << 40;
  const std::string sizes =
      max_tokens < kCountable ? StrCat(", ", Sizes(num_prompt_tokens + max_tokens - 1, limits), ",") : "";
  return NeverFits("sampling.max_tokens", StrCat(tokens, sizes, " are needed", Available(limits), "; at most ",
                                                 max_total_tokens - num_prompt_tokens, " output tokens would fit"));
}

}  // namespace

absl::Status ValidateRequest(const GenerationRequest& request, const EngineLimits& limits) {
  QUIRE_RETURN_IF_ERROR(ValidateSamplingParams(request.sampling, limits.vocab_size));
  QUIRE_RETURN_IF_ERROR(ValidatePrompt(request.prompt_token_ids, limits));
  return ValidateSizes(request, limits);
}

int64_t ResolveMaxTokens(const GenerationRequest& request, const EngineLimits& limits) {
  const auto num_prompt_tokens = static_cast<int64_t>(request.prompt_token_ids.size());
  return request.sampling.max_tokens.value_or(MaxTotalTokens(limits) - num_prompt_tokens);
}

}  // namespace quire
