#include "engine/scheduler/request_fit.h"

#include <algorithm>
#include <string>

#include "engine/base/status.h"
#include "engine/base/strings.h"
#include "engine/kv_cache/kv_cache_manager.h"

namespace quire {
namespace {

std::string Blocks(int64_t num_blocks, const FitLimits& limits) {
  const std::string bytes =
      limits.bytes_per_block > 0 ? StrCat(" (", num_blocks * limits.bytes_per_block, " bytes)") : "";
  return StrCat(num_blocks, " KV blocks", bytes);
}

std::string Sizes(int64_t num_stored_tokens, const FitLimits& limits) {
  return StrCat(num_stored_tokens, " tokens in ", Blocks(BlocksFor(num_stored_tokens, limits.block_size), limits));
}

std::string Available(const FitLimits& limits) {
  return StrCat("; available are ", limits.max_model_len, " tokens (max_model_len) and ",
                Blocks(limits.num_blocks, limits));
}

}  // namespace

FitLimits FitLimitsFor(const std::string& tenant, const TenantLimitsByName& tenants, const FitLimits& pool) {
  FitLimits limits = pool;
  limits.num_blocks = std::min(pool.num_blocks, LimitsOf(tenant, tenants).max_kv_blocks.value_or(pool.num_blocks));
  return limits;
}

int64_t BlocksForRequest(int64_t num_prompt_tokens, int64_t max_tokens, int64_t block_size) {
  return BlocksFor(num_prompt_tokens + max_tokens - 1, block_size);
}

int64_t MaxOutputTokens(int64_t num_prompt_tokens, const FitLimits& limits) {
  return std::min(limits.max_model_len, limits.num_blocks * limits.block_size + 1) - num_prompt_tokens;
}

absl::Status CheckRequestFits(int64_t num_prompt_tokens, std::optional<int64_t> max_tokens, const FitLimits& limits) {
  const int64_t most = MaxOutputTokens(num_prompt_tokens, limits);
  if (most < 1) {
    return NeverFits("prompt", StrCat("the prompt's ", Sizes(num_prompt_tokens, limits),
                                      " and 1 output token are needed", Available(limits)));
  }
  if (!max_tokens || *max_tokens <= most) return absl::OkStatus();
  constexpr int64_t kCountable = int64_t{1} << 40;
  const std::string sizes =
      *max_tokens < kCountable ? StrCat(", ", Sizes(num_prompt_tokens + *max_tokens - 1, limits), ",") : "";
  return NeverFits("sampling.max_tokens",
                   StrCat(num_prompt_tokens, " prompt tokens and ", *max_tokens, " output tokens", sizes, " are needed",
                          Available(limits), "; at most ", most, " output tokens would fit"));
}

}  // namespace quire
