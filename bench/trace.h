#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/ids.h"

namespace quire {

// One request of a trace: when it comes, who sends it, how long it is, and what text it shares with others. The first
// prefix_tokens tokens are those of every request with this prefix_id; the others are its conversation's, so that a
// later turn of the conversation repeats prompt and output of the turns before it.
struct TraceRequest {
  double arrival_seconds = 0;
  std::string tenant = {};
  int64_t prompt_tokens = 0;  // >= 1, the prefix included
  int64_t output_tokens = 0;  // >= 1
  int32_t priority = 0;       // lower runs first
  int64_t prefix_id = 0;      // a system prompt, say
  int64_t prefix_tokens = 0;  // in [0, prompt_tokens]; 0 shares nothing
  // Turns of one conversation follow each other in the trace; none arrives before the one before it has ended. Unset: a
  // conversation of its own.
  std::optional<int64_t> conversation_id = {};
  std::optional<double> cancel_after_seconds = {};  // since arrival
};

using Trace = std::vector<TraceRequest>;  // in order of arrival_seconds

// The token at `position` of the request's text, prompt and output alike: a hash of whose text it is and of the
// position. `index` is the request's place in the trace.
TokenId TokenAt(const TraceRequest& request, int64_t index, int64_t position);

// JSON lines, a request each, with the fields above; arrival_seconds, prompt_tokens and output_tokens are required.
// Lines are sorted by arrival. INVALID_ARGUMENT names the line and the field.
absl::StatusOr<Trace> ReadTrace(const std::string& path);
absl::Status WriteTrace(const Trace& trace, const std::string& path);

}  // namespace quire
