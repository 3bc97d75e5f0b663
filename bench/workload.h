#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "bench/trace.h"

namespace quire {

// Lengths in tokens: log-normal, `median` * exp(sigma * N(0, 1)), at least 1.
struct LengthDistribution {
  double median = 0;
  double sigma = 0;  // >= 0; 0 makes all equal
};

struct WorkloadTenant {
  std::string name;
  double share = 1;  // of the requests, beside the other tenants' shares
};

struct WorkloadPriority {
  int32_t priority = 0;
  double share = 1;  // of the requests, beside the other priorities' shares
};

// A workload in distributions. The same fields and seed make the same trace.
struct Workload {
  uint64_t seed = 1;
  int64_t num_requests = 2000;
  double requests_per_second = 1;  // Poisson arrivals; infinite: all at once
  LengthDistribution prompt = {.median = 400, .sigma = 0.7};
  LengthDistribution output = {.median = 200, .sigma = 0.7};
  int64_t max_request_tokens = 0;  // prompt and output together are cut to it; >= 2
  std::vector<WorkloadTenant> tenants = {{.name = "default"}};
  std::vector<WorkloadPriority> priorities = {{}};
  // The share of conversations that begin with one of num_system_prompts texts of system_prompt_tokens each. Its tokens
  // come before the prompt's own.
  double system_prompt_share = 0;
  int64_t num_system_prompts = 1;
  int64_t system_prompt_tokens = 200;
  // Turns of a conversation, geometric; each turn's prompt is all of the turn before it, and a new prompt. 1: no chat.
  double mean_turns = 1;
  double mean_think_seconds = 10;  // between turns, exponential
  double cancel_probability = 0;
  double mean_cancel_seconds = 5;  // after arrival, exponential

  // INVALID_ARGUMENT names the field, the value and the accepted range.
  absl::Status Validate() const;
};

// The workload must be valid. At least num_requests requests, sorted by arrival, and cut to num_requests.
Trace MakeTrace(const Workload& workload);

}  // namespace quire
