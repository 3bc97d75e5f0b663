#include "bench/simulator.h"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>

#include "bench/report.h"
#include "bench/workload.h"

namespace quire {
namespace {

using Catch::Approx;

SimulationConfig SmallConfig() {
  SimulationConfig config;
  config.scheduler = {.max_num_batched_tokens = 64, .max_num_seqs = 16, .max_model_len = 512};
  config.cache.num_blocks = 40;
  config.cache.block_size = 16;
  config.cost = {.seconds_per_step = 1,
                 .seconds_per_prefill_token = 0.5,
                 .seconds_per_decode = 0.25,
                 .seconds_per_context_token = 0.125};
  return config;
}

SimulationResult Run(const SimulationConfig& config, const Trace& trace) {
  auto result = Simulator(config, trace).Run();
  INFO(result.status().ToString());
  REQUIRE(result.ok());
  return *std::move(result);
}

TEST_CASE("Steps take the time of the cost model") {
  const Trace trace = {{.arrival_seconds = 2, .prompt_tokens = 10, .output_tokens = 3}};
  const SimulationResult result = Run(SmallConfig(), trace);
  const RequestOutcome& outcome = result.requests[0];
  CHECK(outcome.end == RequestEnd::kFinished);
  CHECK(outcome.num_output_tokens == 3);
  CHECK(outcome.first_scheduled_seconds.value() == Approx(2));
  const double prefill_seconds = 1 + 10 * 0.5 + 10 * 0.125;
  CHECK(outcome.first_token_seconds.value() == Approx(2 + prefill_seconds));
  const double decode_seconds = 2 * (1 + 0.25) + (11 + 12) * 0.125;
  CHECK(outcome.end_seconds == Approx(2 + prefill_seconds + decode_seconds));
  CHECK(result.num_steps == 3);
  CHECK(result.num_computed_tokens == 12);
  CHECK(result.num_recomputed_tokens == 0);
  // One block was in use, with 10, 11 and 12 tokens at the ends of the steps.
  CHECK(result.used_block_seconds == Approx(prefill_seconds + decode_seconds));
  CHECK(result.wasted_slot_seconds == Approx(6 * prefill_seconds + 5 * (1.25 + 11 * 0.125) + 4 * (1.25 + 12 * 0.125)));
}

TEST_CASE("What never fits is refused, what is cancelled ends then") {
  const Trace trace = {{.prompt_tokens = 600, .output_tokens = 3},
                       {.prompt_tokens = 10, .output_tokens = 400, .cancel_after_seconds = 50}};
  const SimulationResult result = Run(SmallConfig(), trace);
  CHECK(result.requests[0].end == RequestEnd::kRefused);
  CHECK(result.requests[1].end == RequestEnd::kCancelled);
  CHECK(result.requests[1].end_seconds >= 50);
  CHECK(result.requests[1].num_output_tokens < 400);
  CHECK(result.final_usage.num_used_blocks == 0);
}

TEST_CASE("A closed loop keeps its number of requests, and a conversation's turns follow each other") {
  SimulationConfig config = SmallConfig();
  config.concurrency = 2;
  Trace trace;
  for (int i = 0; i < 6; ++i) trace.push_back({.prompt_tokens = 4, .output_tokens = 8, .conversation_id = i % 2});
  const SimulationResult result = Run(config, trace);
  for (size_t i = 2; i < trace.size(); ++i) {
    CHECK(result.requests[i].arrival_seconds >= result.requests[i - 2].end_seconds);
    CHECK(result.requests[i].end == RequestEnd::kFinished);
  }
}

TEST_CASE("An overloaded pool loses no request, and the same trace gives the same report") {
  SimulationConfig config = SmallConfig();
  config.concurrency = 12;
  const Trace trace = MakeTrace({.num_requests = 300,
                                 .prompt = {.median = 60, .sigma = 0.5},
                                 .output = {.median = 60, .sigma = 0.5},
                                 .max_request_tokens = 512,
                                 .tenants = {{.name = "a"}, {.name = "b"}},
                                 .system_prompt_share = 0.5,
                                 .system_prompt_tokens = 40,
                                 .mean_turns = 2,
                                 .cancel_probability = 0.1});
  const SimulationResult result = Run(config, trace);
  CHECK(result.num_preemptions > 0);
  CHECK(result.num_recomputed_tokens > 0);
  CHECK(result.final_usage.num_used_blocks == 0);
  for (size_t i = 0; i < trace.size(); ++i) {
    const RequestOutcome& outcome = result.requests[i];
    REQUIRE(outcome.end != RequestEnd::kRefused);
    if (outcome.end == RequestEnd::kFinished) REQUIRE(outcome.num_output_tokens == trace[i].output_tokens);
  }
  const LatencyLimits limits;
  const nlohmann::json report = MakeReport(trace, config, result, limits, 100);
  CHECK(MakeReport(trace, config, Run(config, trace), limits, 100) == report);
  CHECK(report["all"]["requests"] == 300);
  CHECK(report["tenants"]["a"]["requests"].get<int>() + report["tenants"]["b"]["requests"].get<int>() == 300);
}

}  // namespace
}  // namespace quire
