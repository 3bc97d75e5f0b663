#pragma once

#include <cstdint>
#include <span>

#include "absl/status/statusor.h"
#include "engine/base/generation_types.h"
#include "engine/sampling/sampler.h"

namespace quire {

// The log-probability of `chosen` under the model's own distribution (raw logits, before sampling parameters) and
// those of the `num_top` best tokens, best first. INTERNAL if the logits hold NaN or infinity.
absl::StatusOr<PositionLogprobs> ComputeLogprobs(std::span<const float> logits, TokenId chosen, int32_t num_top,
                                                 SamplingScratch* scratch);

}  // namespace quire
