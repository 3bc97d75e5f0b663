#include "engine/sampling/logprobs.h"

#include <cmath>
#include <limits>
#include <vector>

#include "catch2/catch_test_macros.hpp"
#include "catch2/matchers/catch_matchers_floating_point.hpp"

namespace quire {
namespace {

using Catch::Matchers::WithinAbs;

TEST_CASE("log-probabilities are the log-softmax of the raw logits, best first") {
  const std::vector<float> logits = {1.0F, 3.0F, 2.0F, 3.0F, -4.0F};
  double sum = 0;
  for (const float logit : logits) sum += std::exp(static_cast<double>(logit));
  SamplingScratch scratch(5);
  const auto result = ComputeLogprobs(logits, 4, 3, &scratch);
  REQUIRE(result.ok());
  CHECK(result->chosen.token_id == 4);
  CHECK_THAT(result->chosen.logprob, WithinAbs(-4.0 - std::log(sum), 1e-6));
  REQUIRE(result->top.size() == 3);
  CHECK(result->top[0].token_id == 1);
  CHECK(result->top[1].token_id == 3);
  CHECK(result->top[2].token_id == 2);
  CHECK_THAT(result->top[2].logprob, WithinAbs(2.0 - std::log(sum), 1e-6));
}

TEST_CASE("no alternatives are listed when none are asked, and at most the vocabulary") {
  const std::vector<float> logits = {1.0F, 2.0F};
  SamplingScratch scratch(2);
  CHECK(ComputeLogprobs(logits, 0, 0, &scratch)->top.empty());
  CHECK(ComputeLogprobs(logits, 0, 20, &scratch)->top.size() == 2);
}

TEST_CASE("large logits do not overflow") {
  const std::vector<float> logits = {1000.0F, 999.0F};
  SamplingScratch scratch(2);
  CHECK_THAT(ComputeLogprobs(logits, 0, 0, &scratch)->chosen.logprob, WithinAbs(-std::log1p(std::exp(-1.0)), 1e-6));
}

TEST_CASE("broken logits are INTERNAL") {
  SamplingScratch scratch(2);
  const std::vector<float> logits = {1.0F, std::numeric_limits<float>::quiet_NaN()};
  CHECK(ComputeLogprobs(logits, 0, 1, &scratch).status().code() == absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace quire
