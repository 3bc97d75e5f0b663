#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace quire {

// A number of tokens: log-normal around the median, at least 1, at most `max`.
struct LengthDistribution {
  int64_t median = 1;
  double sigma = 0;  // of the logarithm; 0: always the median
  int64_t max = 1;
};

struct TenantShare {
  std::string name;  // empty: what --tenant says
  double share = 1;  // of the requests, relative to the others'
};

// The load, as flags describe it.
struct LoadOptions {
  int64_t num_requests = 100;
  std::optional<double> requests_per_second;  // open loop, Poisson arrivals; unset: closed loop
  int64_t concurrency = 8;                    // of the closed loop: requests in flight
  LengthDistribution prompt = {.median = 400, .sigma = 0, .max = 1 << 20};
  LengthDistribution output = {.median = 200, .sigma = 0, .max = 1 << 20};
  int64_t shared_prefix_tokens = 0;  // with which every prompt begins, beside its own tokens
  std::vector<TenantShare> tenants = {{}};
  double cancel_ratio = 0;  // of the requests, cancelled by the client at a random place of the answer
  uint64_t seed = 1;
};

struct PlannedRequest {
  double start_seconds = 0;  // after the load's begin; 0 in a closed loop
  std::string tenant;
  std::vector<int32_t> token_ids;
  int64_t max_tokens = 1;
  std::optional<int64_t> cancel_after_tokens;  // 0: as soon as it is sent
};

// All requests of a load, in order of their start: the same for the same options. Token ids are drawn uniformly from
// [0, vocab_size), so prompts share nothing but the prefix.
std::vector<PlannedRequest> PlanLoad(const LoadOptions& options, int64_t vocab_size);

}  // namespace quire
