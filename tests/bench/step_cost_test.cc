#include "bench/step_cost.h"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <vector>

#include "bench/step_work.h"

namespace quire::testing {
namespace {

const Cost& At(const PartCosts& costs, StepPart part) { return costs[static_cast<size_t>(part)]; }

}  // namespace

TEST_CASE("WorkOf counts tokens, cached tokens and scores of a ragged step", "[bench]") {
  const std::vector<TokenId> tokens = {1, 2, 3, 4};
  StepPlan plan;
  ScheduledRequest decode;
  decode.token_ids = std::span(tokens).first(1);
  decode.first_position = 10;
  ScheduledRequest chunk;
  chunk.token_ids = tokens;
  chunk.first_position = 2;
  plan.requests = {decode, chunk};
  plan.num_tokens = 5;
  plan.num_logits_rows = 1;
  StepWork work = WorkOf(plan);
  CHECK(work.num_steps == 1);
  CHECK(work.num_head_steps == 1);
  CHECK(work.num_tokens == 5);
  CHECK(work.num_logits_rows == 1);
  CHECK(work.num_cached_tokens == 11 + 6);
  CHECK(work.num_scores == 11 + (3 + 4 + 5 + 6));

  plan.num_logits_rows = 0;
  work += WorkOf(plan);
  CHECK(work.num_steps == 2);
  CHECK(work.num_head_steps == 1);
  CHECK(work.num_scores == 2 * 29);
}

TEST_CASE("CostOf counts every byte and operation once", "[bench]") {
  DecoderSizes sizes;
  sizes.weight_elements[static_cast<size_t>(StepPart::kQkv)] = 100;
  sizes.weight_bytes[static_cast<size_t>(StepPart::kQkv)] = 60;
  sizes.weight_elements[static_cast<size_t>(StepPart::kHead)] = 1000;
  sizes.weight_bytes[static_cast<size_t>(StepPart::kHead)] = 1100;
  sizes.ops_per_score = 8;
  sizes.kv_bytes_per_token = 5;
  const StepWork work = {.num_steps = 3,
                         .num_head_steps = 2,
                         .num_tokens = 20,
                         .num_logits_rows = 4,
                         .num_cached_tokens = 50,
                         .num_scores = 70};
  const PartCosts costs = CostOf(sizes, work);
  CHECK(At(costs, StepPart::kQkv).ops == 2 * 20 * 100);
  CHECK(At(costs, StepPart::kQkv).bytes == 3 * 60);
  CHECK(At(costs, StepPart::kHead).ops == 2 * 4 * 1000);
  CHECK(At(costs, StepPart::kHead).bytes == 2 * 1100);
  CHECK(At(costs, StepPart::kAttention).ops == 70 * 8);
  CHECK(At(costs, StepPart::kAttention).bytes == 50 * 5);
  CHECK(At(costs, StepPart::kNorm).ops == 0);
  const Cost sum = Sum(costs);
  CHECK(sum.ops == 4000 + 8000 + 560);
  CHECK(sum.bytes == 180 + 2200 + 250);
  CHECK(sizes.weight_bytes_per_step() == 1160);
}

}  // namespace quire::testing
