#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "engine/base/generation_types.h"
#include "engine/runtime/generation.h"
#include "engine/scheduler/request_fit.h"
#include "engine/scheduler/tenant_limits.h"

namespace quire {

// What a request must keep to. Fixed when the engine is built, but for `tenants`.
struct EngineLimits {
  int64_t vocab_size = 0;
  FitLimits fit;               // of the whole pool
  TenantLimitsByName tenants;  // which may have less of it
};

// Pure, so that callers learn on their own thread what is wrong. INVALID_ARGUMENT names the field as the API does:
// priority, cache salt, sampling parameters, "token_ids" outside the vocabulary, and prompt and output that could not
// run even alone, with the needed and the available tokens, blocks and bytes.
absl::Status ValidateRequest(const GenerationRequest& request, const EngineLimits& limits);

// The output tokens that a valid request may make: sampling.max_tokens, or what fits in the model's length and the
// tenant's part of the pool. At least 1.
int64_t ResolveMaxTokens(const GenerationRequest& request, const EngineLimits& limits);

}  // namespace quire
