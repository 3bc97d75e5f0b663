#pragma once

#include <optional>
#include <string>

#include "client/load_runner.h"
#include "client/message_json.h"

namespace quire {

// A request is good if it ended well within both.
struct LatencyLimits {
  std::optional<double> first_token_seconds;
  std::optional<double> seconds_per_output_token;
};

// Counts by status, tokens per second, percentiles of time to first token, gaps between tokens, time per output token
// and whole time, and goodput: all together, and per tenant where there are several. A client's own cancellations are
// counted apart from failures, and their latencies left out.
Json LoadReport(const LoadResult& result, const LatencyLimits& limits);

// The same for people.
std::string RenderLoadReport(const Json& report);

}  // namespace quire
