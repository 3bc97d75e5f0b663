#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "bench/simulator.h"
#include "bench/trace.h"

namespace quire {

// What a request must keep to count as goodput.
struct LatencyLimits {
  double ttft_seconds = 5;
  double tpot_seconds = 0.2;
};

// Everything that a simulation tells, as JSON: the pool, the steps, and waits overall and by tenant.
// Queue time and TTFT count from arrival, over requests that came so far; TPOT is a finished request's mean time
// between tokens.
nlohmann::json MakeReport(const Trace& trace, const SimulationConfig& config, const SimulationResult& result,
                          const LatencyLimits& limits, int64_t kv_bytes_per_token);

// The same for people.
void PrintReport(const nlohmann::json& report);

}  // namespace quire
