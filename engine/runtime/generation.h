#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/generation_types.h"
#include "engine/base/ids.h"
#include "engine/base/token_constraint.h"
#include "engine/base/token_sink.h"

namespace quire {

inline constexpr int32_t kMinPriority = -100;
inline constexpr int32_t kMaxPriority = 100;
inline constexpr size_t kMaxCacheSaltBytes = 256;

// A request as the engine takes it: token ids in, tokens out through the sink. Every protocol is translated
// into this; it knows no transport and no text.
struct GenerationRequest {
  std::string label;  // the caller's request id, for logs and statistics
  std::string tenant = "default";
  int32_t priority = 0;                    // lower runs first; in [kMinPriority, kMaxPriority]
  std::string cache_salt;                  // prefixes are shared only within one tenant and salt
  bool skip_reading_prefix_cache = false;  // computes the whole prompt, and still lets others read it
  std::vector<TokenId> prompt_token_ids;   // at least one
  SamplingParams sampling;
  std::shared_ptr<TokenConstraint> constraint;  // null: any token; called from the engine's thread
  std::optional<TimePoint> deadline;
  TimePoint arrival_time;
  std::shared_ptr<TokenSink> sink;
};

}  // namespace quire
