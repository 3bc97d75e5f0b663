#include "client/load_plan.h"

#include <algorithm>
#include <cmath>
#include <random>

namespace quire {
namespace {

using Random = std::mt19937_64;

int64_t DrawLength(const LengthDistribution& length, Random& random) {
  if (length.sigma <= 0) {
    return std::clamp<int64_t>(length.median, 1, length.max);
  }
  std::lognormal_distribution<double> distribution(std::log(static_cast<double>(length.median)), length.sigma);
  const double drawn = std::min(distribution(random), static_cast<double>(length.max));
  return std::max<int64_t>(1, std::llround(drawn));
}

void AppendTokens(int64_t count, int64_t vocab_size, Random& random, std::vector<int32_t>* token_ids) {
  std::uniform_int_distribution<int32_t> token(0, static_cast<int32_t>(vocab_size - 1));
  for (int64_t i = 0; i < count; ++i) {
    token_ids->push_back(token(random));
  }
}

}  // namespace

std::vector<PlannedRequest> PlanLoad(const LoadOptions& options, int64_t vocab_size) {
  Random random(options.seed);
  std::vector<int32_t> prefix;
  AppendTokens(options.shared_prefix_tokens, vocab_size, random, &prefix);
  std::vector<double> shares;
  for (const TenantShare& tenant : options.tenants) {
    shares.push_back(tenant.share);
  }
  std::discrete_distribution<size_t> tenant(shares.begin(), shares.end());
  std::exponential_distribution<double> gap_seconds(options.requests_per_second.value_or(1));
  std::bernoulli_distribution cancels(options.cancel_ratio);

  std::vector<PlannedRequest> plan(static_cast<size_t>(options.num_requests));
  double start_seconds = 0;
  for (PlannedRequest& request : plan) {
    if (options.requests_per_second) {
      start_seconds += gap_seconds(random);
    }
    request.start_seconds = start_seconds;
    request.tenant = options.tenants[tenant(random)].name;
    request.token_ids = prefix;
    AppendTokens(DrawLength(options.prompt, random), vocab_size, random, &request.token_ids);
    request.max_tokens = DrawLength(options.output, random);
    if (cancels(random)) {
      request.cancel_after_tokens = std::uniform_int_distribution<int64_t>(0, request.max_tokens - 1)(random);
    }
  }
  return plan;
}

}  // namespace quire
