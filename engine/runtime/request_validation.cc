#include "engine/runtime/request_validation.h"

#include "engine/base/status.h"
#include "engine/base/strings.h"
#include "engine/sampling/sampling_params.h"

namespace quire {
namespace {

absl::Status ValidatePrompt(std::span<const TokenId> prompt, const EngineLimits& limits) {
  if (prompt.empty()) return InvalidArgument("prompt", "0 tokens", "at least 1 token");
  for (size_t i = 0; i < prompt.size(); ++i) {
    if (prompt[i] >= 0 && prompt[i] < limits.vocab_size) continue;
    return InvalidArgument(StrCat("token_ids[", i, "]"), prompt[i],
                           StrCat("a token id in [0, ", limits.vocab_size, ")"));
  }
  return absl::OkStatus();
}

absl::Status ValidatePolicy(const GenerationRequest& request) {
  if (request.priority < kMinPriority || request.priority > kMaxPriority) {
    return InvalidArgument("priority", request.priority,
                           StrCat("an integer in [", kMinPriority, ", ", kMaxPriority, "]"));
  }
  if (request.cache_salt.size() <= kMaxCacheSaltBytes) return absl::OkStatus();
  return InvalidArgument("cache_salt", StrCat(request.cache_salt.size(), " bytes"),
                         StrCat("at most ", kMaxCacheSaltBytes, " bytes"));
}

}  // namespace

absl::Status ValidateRequest(const GenerationRequest& request, const EngineLimits& limits) {
  QUIRE_RETURN_IF_ERROR(ValidatePolicy(request));
  QUIRE_RETURN_IF_ERROR(ValidateSamplingParams(request.sampling, limits.vocab_size));
  QUIRE_RETURN_IF_ERROR(ValidatePrompt(request.prompt_token_ids, limits));
  return CheckRequestFits(static_cast<int64_t>(request.prompt_token_ids.size()), request.sampling.max_tokens,
                          FitLimitsFor(request.tenant, limits.tenants, limits.fit));
}

int64_t ResolveMaxTokens(const GenerationRequest& request, const EngineLimits& limits) {
  const auto num_prompt_tokens = static_cast<int64_t>(request.prompt_token_ids.size());
  return request.sampling.max_tokens.value_or(
      MaxOutputTokens(num_prompt_tokens, FitLimitsFor(request.tenant, limits.tenants, limits.fit)));
}

}  // namespace quire
