#include "engine/sampling/sampling_params.h"

#include <cmath>
#include <optional>
#include <string_view>

#include "engine/base/status.h"
#include "engine/base/strings.h"

namespace quire {
namespace {

absl::Status ValidateNumbers(const SamplingParams& params) {
  if (!std::isfinite(params.temperature) || params.temperature < 0.0F) {
    return InvalidArgument("sampling.temperature", params.temperature, "a finite number >= 0");
  }
  if (params.top_k < 0) return InvalidArgument("sampling.top_k", params.top_k, "an integer >= 0 (0 keeps all tokens)");
  // Comparisons are written so that NaN fails them.
  if (!(params.top_p > 0.0F && params.top_p <= 1.0F)) {
    return InvalidArgument("sampling.top_p", params.top_p, "a number in (0, 1]");
  }
  if (!(params.min_p >= 0.0F && params.min_p <= 1.0F)) {
    return InvalidArgument("sampling.min_p", params.min_p, "a number in [0, 1]");
  }
  if (!std::isfinite(params.repetition_penalty) || params.repetition_penalty <= 0.0F) {
    return InvalidArgument("sampling.repetition_penalty", params.repetition_penalty, "a finite number > 0");
  }
  if (params.max_tokens && *params.max_tokens < 1) {
    return InvalidArgument("sampling.max_tokens", *params.max_tokens, "an integer >= 1");
  }
  return absl::OkStatus();
}

absl::Status ValidateStops(const SamplingParams& params, int64_t vocab_size) {
  if (static_cast<int64_t>(params.stop_strings.size()) > kMaxStopStrings) {
    return InvalidArgument("sampling.stop_strings", StrCat(params.stop_strings.size(), " strings"),
                           StrCat("at most ", kMaxStopStrings));
  }
  for (size_t i = 0; i < params.stop_strings.size(); ++i) {
    const auto size_bytes = static_cast<int64_t>(params.stop_strings[i].size());
    if (size_bytes >= 1 && size_bytes <= kMaxStopStringBytes) continue;
    return InvalidArgument(StrCat("sampling.stop_strings[", i, "]"), StrCat(size_bytes, " bytes"),
                           StrCat("1 to ", kMaxStopStringBytes, " bytes"));
  }
  if (static_cast<int64_t>(params.stop_token_ids.size()) > kMaxStopTokenIds) {
    return InvalidArgument("sampling.stop_token_ids", StrCat(params.stop_token_ids.size(), " ids"),
                           StrCat("at most ", kMaxStopTokenIds));
  }
  for (size_t i = 0; i < params.stop_token_ids.size(); ++i) {
    const TokenId token_id = params.stop_token_ids[i];
    if (token_id >= 0 && token_id < vocab_size) continue;
    return InvalidArgument(StrCat("sampling.stop_token_ids[", i, "]"), token_id,
                           StrCat("a token id in [0, ", vocab_size, ")"));
  }
  return absl::OkStatus();
}

absl::Status ValidateNumLogprobs(std::string_view field, std::optional<int32_t> num_logprobs) {
  if (!num_logprobs || (*num_logprobs >= 0 && *num_logprobs <= kMaxLogprobs)) return absl::OkStatus();
  return InvalidArgument(field, *num_logprobs, StrCat("an integer in [0, ", kMaxLogprobs, "]"));
}

}  // namespace

absl::Status ValidateSamplingParams(const SamplingParams& params, int64_t vocab_size) {
  QUIRE_RETURN_IF_ERROR(ValidateNumbers(params));
  QUIRE_RETURN_IF_ERROR(ValidateStops(params, vocab_size));
  QUIRE_RETURN_IF_ERROR(ValidateNumLogprobs("sampling.logprobs", params.num_logprobs));
  return ValidateNumLogprobs("sampling.prompt_logprobs", params.num_prompt_logprobs);
}

}  // namespace quire
