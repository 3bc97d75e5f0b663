#pragma once

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

// A request as the engine takes it: token ids in, tokens out through the sink. Every protocol is translated
// into this; it knows no transport and no text.
struct GenerationRequest {
  std::string label;  // the caller's request id, for logs and statistics
  std::string tenant = "default";
  std::vector<TokenId> prompt_token_ids;  // at least one
  SamplingParams sampling;
  std::shared_ptr<TokenConstraint> constraint;  // null: any token; called from the engine's thread
  std::optional<TimePoint> deadline;
  TimePoint arrival_time;
  std::shared_ptr<TokenSink> sink;
};

}  // namespace quire
