#include "engine/scheduler/step_length.h"

#include <catch2/catch_test_macros.hpp>

namespace quire {
namespace {

// Steps of a machine that takes `seconds_per_token`, each as long as it may be.
void Run(StepLength* length, double seconds_per_token, int num_steps) {
  for (int i = 0; i < num_steps; ++i) {
    const int64_t num_tokens = length->num_prefill_tokens();
    length->Observe(num_tokens, static_cast<double>(num_tokens) * seconds_per_token);
  }
}

TEST_CASE("Without a target a step gets all its tokens") {
  StepLength length(512, std::nullopt);
  Run(&length, 1, 10);
  CHECK(length.num_prefill_tokens() == 512);
  CHECK(length.predicted_seconds() == 512);
}

TEST_CASE("Steps settle just below the target, and follow the machine") {
  StepLength length(512, 0.25);
  Run(&length, 0.001, 20);  // 250 tokens are the target
  CHECK(length.num_prefill_tokens() <= 250);
  CHECK(length.num_prefill_tokens() >= 200);
  Run(&length, 0.002, 20);
  CHECK(length.num_prefill_tokens() <= 125);
  CHECK(length.num_prefill_tokens() >= 100);
  Run(&length, 0.0001, 20);
  CHECK(length.num_prefill_tokens() == 512);
}

TEST_CASE("A slow machine still gets the least, and never more than a step has") {
  StepLength slow(512, 0.25);
  Run(&slow, 1, 20);
  CHECK(slow.num_prefill_tokens() == StepLength::kLeastTokens);
  StepLength small(8, 0.25);
  Run(&small, 1, 20);
  CHECK(small.num_prefill_tokens() == 8);
}

TEST_CASE("One hiccup halves the length at most, and steps without prefill say nothing of it") {
  StepLength length(512, 0.25);
  length.Observe(10, 30);
  CHECK(length.num_prefill_tokens() == 256);
  length.Observe(0, 30);
  CHECK(length.num_prefill_tokens() == 256);
}

TEST_CASE("A short prompt that was quick says nothing of longer ones") {
  StepLength length(512, 0.25);
  Run(&length, 0.001, 20);
  const int64_t before = length.num_prefill_tokens();
  for (int i = 0; i < 20; ++i) length.Observe(20, 0.02);
  CHECK(length.num_prefill_tokens() == before);
}

TEST_CASE("The slowest of the last steps predicts the next") {
  StepLength length(512, 0.25);
  CHECK(length.predicted_seconds() == 0);
  length.Observe(0, 2);
  for (int i = 0; i < 10; ++i) length.Observe(0, 0.1);
  CHECK(length.predicted_seconds() > 1.5);
  for (int i = 0; i < 1000; ++i) length.Observe(0, 0.1);
  CHECK(length.predicted_seconds() < 0.11);
}

}  // namespace
}  // namespace quire
