// Equalities that must hold whatever the schedule: batched = alone, chunked = whole, preempted = uninterrupted.
#include <algorithm>
#include <memory>
#include <vector>

#include "catch2/catch_test_macros.hpp"
#include "engine/runtime/engine.h"
#include "engine/sampling/rng.h"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_engine.h"

namespace quire {
namespace {

using testing::FakeClock;
using testing::FakeEngine;
using testing::FakeEngineConfig;
using testing::FakeModelRunner;
using testing::MakeFakeEngine;
using testing::RecordingSink;

// 32 requests of different lengths and parameters: half greedy, half drawn.
std::vector<GenerationRequest> MakeRequests(const Clock& clock) {
  std::vector<GenerationRequest> requests;
  for (uint64_t i = 0; i < 32; ++i) {
    std::vector<TokenId> prompt(1 + RandomBits(i, 0) % 60);
    for (size_t k = 0; k < prompt.size(); ++k) prompt[k] = static_cast<TokenId>(RandomBits(i, k + 1) % 97);
    const auto max_tokens = static_cast<int64_t>(1 + RandomBits(i, 1000) % 40);
    GenerationRequest request = testing::GreedyRequest(std::move(prompt), max_tokens, nullptr, clock);
    if (i % 2 == 1) {
      request.sampling.temperature = 0.8F;
      request.sampling.top_p = 0.95F;
      request.sampling.seed = i;
      request.sampling.repetition_penalty = i % 4 == 1 ? 1.2F : 1.0F;
    }
    if (i % 8 == 4) request.sampling.num_prompt_logprobs = 2;
    requests.push_back(std::move(request));
  }
  return requests;
}

struct Outcome {
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  EngineStats stats;
};

// Adds `num_per_step` requests before each step, so that they join and leave at different steps.
Outcome RunAll(const FakeEngineConfig& config, size_t num_per_step) {
  FakeClock clock;
  const FakeEngine fake = MakeFakeEngine(config, &clock);
  std::vector<GenerationRequest> requests = MakeRequests(clock);
  Outcome outcome;
  size_t num_added = 0;
  while (num_added < requests.size() || fake.engine->HasWork()) {
    for (size_t i = 0; i < num_per_step && num_added < requests.size(); ++i, ++num_added) {
      outcome.sinks.push_back(std::make_shared<RecordingSink>());
      requests[num_added].sink = outcome.sinks.back();
      fake.engine->AddRequest(RequestId{num_added + 1}, std::move(requests[num_added]));
    }
    REQUIRE(fake.engine->Step() == StepOutcome::kRan);
    const std::vector<std::string> violations = fake.engine->CheckInvariants();
    INFO((violations.empty() ? "" : violations[0]));
    REQUIRE(violations.empty());
  }
  CHECK(fake.runner->num_wrong_reads() == 0);
  outcome.stats = fake.engine->Stats(false);
  CHECK(outcome.stats.cache.num_used_blocks == 0);
  return outcome;
}

// Each request in an engine of its own that computes the prompt in one piece.
std::vector<std::shared_ptr<RecordingSink>> RunAlone() {
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  FakeClock clock;
  std::vector<GenerationRequest> requests = MakeRequests(clock);
  for (size_t i = 0; i < requests.size(); ++i) {
    const FakeEngine fake = MakeFakeEngine({}, &clock);
    sinks.push_back(std::make_shared<RecordingSink>());
    requests[i].sink = sinks.back();
    fake.engine->AddRequest(RequestId{i + 1}, std::move(requests[i]));
    while (fake.engine->HasWork()) REQUIRE(fake.engine->Step() == StepOutcome::kRan);
  }
  return sinks;
}

void CheckEqual(const Outcome& outcome, const std::vector<std::shared_ptr<RecordingSink>>& alone) {
  REQUIRE(outcome.sinks.size() == alone.size());
  for (size_t i = 0; i < alone.size(); ++i) {
    INFO("request " << i);
    CHECK(outcome.sinks[i]->num_finishes() == 1);
    CHECK(outcome.sinks[i]->result().finish_reason == FinishReason::kLength);
    CHECK(outcome.sinks[i]->token_ids() == alone[i]->token_ids());
    const auto together = outcome.sinks[i]->prompt_logprobs();
    const auto expected = alone[i]->prompt_logprobs();
    REQUIRE(together.size() == expected.size());
    for (size_t k = 0; k < expected.size(); ++k) {
      CHECK(together[k].chosen.token_id == expected[k].chosen.token_id);
      CHECK(together[k].chosen.logprob == expected[k].chosen.logprob);
    }
  }
}

TEST_CASE("a request alone gives what the model says from first principles") {
  FakeClock clock;
  const std::vector<GenerationRequest> requests = MakeRequests(clock);
  const auto alone = RunAlone();
  for (size_t i = 0; i < requests.size(); i += 2) {
    INFO("request " << i);
    CHECK(alone[i]->token_ids() ==
          FakeModelRunner::GreedyContinuation(requests[i].prompt_token_ids, *requests[i].sampling.max_tokens, 97));
  }
}

TEST_CASE("32 requests together give what each gives alone") {
  const Outcome outcome = RunAll({}, 3);
  CHECK(outcome.stats.num_preemptions == 0);
  CheckEqual(outcome, RunAlone());
}

TEST_CASE("prompts in chunks give what prompts in one piece give") {
  const auto alone = RunAlone();
  for (const int64_t budget : {16, 64, 512}) {
    INFO("max_num_batched_tokens " << budget);
    FakeEngineConfig config;
    config.max_num_batched_tokens = budget;
    config.max_num_seqs = 16;
    CheckEqual(RunAll(config, 32), alone);
  }
}

TEST_CASE("preempted requests give what uninterrupted ones give") {
  const auto alone = RunAlone();
  for (const int64_t num_blocks : {25, 40}) {
    INFO("num_blocks " << num_blocks);
    FakeEngineConfig config;
    config.num_blocks = num_blocks;
    config.max_model_len = 100;
    const Outcome outcome = RunAll(config, 32);
    CHECK(outcome.stats.num_preemptions > 0);
    int64_t num_preemptions = 0;
    for (const auto& sink : outcome.sinks) num_preemptions += sink->result().num_preemptions;
    CHECK(num_preemptions == outcome.stats.num_preemptions);
    CheckEqual(outcome, alone);
  }
}

}  // namespace
}  // namespace quire
