#pragma once

#include <nlohmann/json.hpp>
#include <optional>

#include "bench/machine_limits.h"
#include "bench/speed_bench.h"
#include "bench/step_cost.h"

namespace quire {

// What speeds are held against.
struct SpeedLimits {
  MachineLimits machine;
  double weight_read_bytes_per_second = 0;  // as many bytes as a step reads of weights, again and again
};

nlohmann::json ToJson(const SpeedLimits& limits);

// One row of the report: medians over the runs. Shares are of the limits, and null where these are not known.
// `compute_type` is what linear layers compute in.
nlohmann::json ToJson(const SpeedResult& result, const DecoderSizes& sizes, const std::string& compute_type,
                      const std::optional<SpeedLimits>& limits);

// The same for people: {"limits": ..., "results": rows}, with what is common to them.
void PrintSpeedReport(const nlohmann::json& report);

}  // namespace quire
