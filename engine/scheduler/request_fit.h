#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "engine/scheduler/tenant_limits.h"

namespace quire {

// What a request must keep to if it is ever to run.
struct FitLimits {
  int64_t max_model_len = 0;    // prompt and output together, in tokens
  int64_t num_blocks = 0;       // that it may come to own
  int64_t block_size = 0;       // tokens
  int64_t bytes_per_block = 0;  // for messages; 0: not told
};

// `pool`, with no more blocks than the tenant may own.
FitLimits FitLimitsFor(const std::string& tenant, const TenantLimitsByName& tenants, const FitLimits& pool);

// Blocks that a request owns at its end. The last output token is never computed and needs no slot.
int64_t BlocksForRequest(int64_t num_prompt_tokens, int64_t max_tokens, int64_t block_size);

// The most output tokens that fit beside the prompt; below 1: none does.
int64_t MaxOutputTokens(int64_t num_prompt_tokens, const FitLimits& limits);

// NeverFits for what could not run even alone, with the needed and the available tokens, blocks and bytes; the field
// is "prompt" or "sampling.max_tokens". Unset `max_tokens` means one at least.
absl::Status CheckRequestFits(int64_t num_prompt_tokens, std::optional<int64_t> max_tokens, const FitLimits& limits);

}  // namespace quire
