#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "engine/base/generation_types.h"

namespace quire {

inline constexpr int64_t kMaxStopStrings = 16;
inline constexpr int64_t kMaxStopStringBytes = 256;
inline constexpr int64_t kMaxStopTokenIds = 256;

// INVALID_ARGUMENT names the first field out of range, as the API does ("sampling.top_p"), its value and its range.
absl::Status ValidateSamplingParams(const SamplingParams& params, int64_t vocab_size);

}  // namespace quire
