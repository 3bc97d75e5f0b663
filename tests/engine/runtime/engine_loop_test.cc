#include "engine/runtime/engine_loop.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "catch2/catch_test_macros.hpp"
#include "engine/base/status.h"
#include "tests/engine/runtime/engine_loop_harness.h"

namespace quire {
namespace {

using testing::FakeEngineConfig;
using testing::FakeModelRunner;
using testing::RecordingSink;

const std::vector<TokenId> kPrompt = {5, 6, 7};
// No test waits this long unless something hangs.
constexpr std::chrono::minutes kPatience(4);

std::vector<TokenId> Expected(const std::vector<TokenId>& prompt, int64_t num_tokens) {
  return FakeModelRunner::GreedyContinuation(prompt, num_tokens, 97);
}

using Harness = testing::EngineLoopHarness<SteadyClock>;

TEST_CASE("a submitted request runs to its end") {
  Harness harness;
  const auto sink = harness.Submit(10);
  sink->WaitForFinish();
  CHECK(sink->token_ids() == Expected(kPrompt, 10));
  CHECK(sink->result().finish_reason == FinishReason::kLength);
  REQUIRE(harness.loop->WaitUntilIdle(harness.clock.Now() + kPatience));
  CHECK(harness.loop->num_open_requests() == 0);
  CHECK(harness.loop->num_steps() == 10);
  CHECK(harness.loop->GetStats(false).cache.num_used_blocks == 0);
}

TEST_CASE("what Submit refuses never reaches the sink") {
  Harness harness;
  const auto sink = std::make_shared<RecordingSink>();
  GenerationRequest bad = harness.Request(kPrompt, 10, sink);
  bad.sampling.top_p = 0.0F;
  CHECK(FieldOf(harness.loop->Submit(std::move(bad)).status()) == "sampling.top_p");
  CHECK(FieldOf(harness.loop->Submit(harness.Request({1, 97}, 10, sink)).status()) == "token_ids[1]");
  CHECK(FieldOf(harness.loop->Submit(harness.Request({}, 10, sink)).status()) == "prompt");
  CHECK(FieldOf(harness.loop->Submit(harness.Request(kPrompt, 1000, sink)).status()) == "sampling.max_tokens");
  CHECK(FieldOf(harness.loop->Submit(harness.Request(std::vector<TokenId>(256, 1), {}, sink)).status()) == "prompt");
  GenerationRequest late = harness.Request(kPrompt, 10, sink);
  late.deadline = harness.clock.Now();
  CHECK(harness.loop->Submit(std::move(late)).status().code() == absl::StatusCode::kDeadlineExceeded);
  harness.loop.reset();
  CHECK(sink->num_finishes() == 0);
}

TEST_CASE("statistics of an engine that hangs are not waited for longer than asked") {
  Harness harness({}, /*gated=*/true);
  harness.Submit(1);
  harness.gate.WaitUntilInside();
  const auto stats = harness.loop->GetStats(false, Duration::zero());
  CHECK(stats.status().code() == absl::StatusCode::kUnavailable);
  CHECK(RetryDelayOf(stats.status()).has_value());
  harness.gate.Open();
  const auto later = harness.loop->GetStats(false, kPatience);
  REQUIRE(later.ok());
  CHECK(later->steps.seconds.num_values() == later->num_steps);
}

TEST_CASE("Submit, Cancel and Finish do not wait for a step") {
  Harness harness({}, /*gated=*/true);
  const auto first = harness.Submit(50);
  harness.gate.WaitUntilInside();
  RequestId cancelled_id{};
  RequestId finished_id{};
  const auto cancelled = harness.Submit(50, &cancelled_id);
  const auto finished = harness.Submit(50, &finished_id);
  harness.loop->Cancel(cancelled_id, absl::CancelledError("gone"));
  harness.loop->Finish(finished_id, FinishReason::kStopString, 0);
  CHECK(cancelled->num_finishes() == 0);
  harness.gate.LetOneStepPass();
  cancelled->WaitForFinish();  // before the next step, which the gate holds
  finished->WaitForFinish();
  CHECK(cancelled->result().status.code() == absl::StatusCode::kCancelled);
  CHECK(finished->result().finish_reason == FinishReason::kStopString);
  harness.gate.Open();
  first->WaitForFinish();
  CHECK(first->token_ids() == Expected(kPrompt, 50));
}

TEST_CASE("statistics are answered while idle and between two steps") {
  Harness harness({}, /*gated=*/true);
  CHECK(harness.loop->GetStats(true).requests.empty());
  harness.Submit(50);
  harness.gate.WaitUntilInside();
  std::thread opener([&] { harness.gate.Open(); });
  const EngineStats stats = harness.loop->GetStats(true);
  opener.join();
  CHECK(stats.num_steps >= 1);
  CHECK(stats.num_invariant_violations == 0);
  harness.loop->CancelAll(absl::CancelledError("enough"));
  REQUIRE(harness.loop->WaitUntilIdle(harness.clock.Now() + kPatience));
}

TEST_CASE("draining refuses the new and finishes the accepted") {
  Harness harness({}, /*gated=*/true);
  const auto accepted = harness.Submit(20);
  harness.gate.WaitUntilInside();
  CHECK(!harness.loop->draining());
  harness.loop->StartDraining();
  CHECK(harness.loop->draining());
  const auto refused = harness.loop->Submit(harness.Request(kPrompt, 3, std::make_shared<RecordingSink>()));
  CHECK(refused.status().code() == absl::StatusCode::kUnavailable);
  CHECK(RetryDelayOf(refused.status()).has_value());
  CHECK(!harness.loop->WaitUntilIdle(harness.clock.Now()));
  harness.gate.Open();
  REQUIRE(harness.loop->WaitUntilIdle(harness.clock.Now() + kPatience));
  CHECK(accepted->token_ids() == Expected(kPrompt, 20));
}

TEST_CASE("a loop that is destroyed ends what runs and what was just submitted, once each") {
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  {
    Harness harness;
    for (int i = 0; i < 100; ++i) sinks.push_back(harness.Submit(200));
  }
  for (const auto& sink : sinks) {
    CHECK(sink->num_finishes() == 1);
    CHECK(!sink->late_call());
    const absl::Status status = sink->result().status;
    CHECK((status.ok() || status.code() == absl::StatusCode::kUnavailable));
  }
}

TEST_CASE("many threads submit, cancel, finish and look: each request ends once, the kept ones unchanged") {
  constexpr int kNumThreads = 4;
  constexpr int kNumPerThread = 60;
  FakeEngineConfig config;
  config.num_blocks = 40;  // preemptions too
  config.max_model_len = 100;
  Harness harness(config);
  std::vector<std::vector<std::shared_ptr<RecordingSink>>> sinks(kNumThreads);
  std::vector<std::thread> threads;
  for (int t = 0; t < kNumThreads; ++t) {
    threads.emplace_back([&, t] {
      for (int i = 0; i < kNumPerThread; ++i) {
        auto sink = std::make_shared<RecordingSink>();
        const std::vector<TokenId> prompt = {static_cast<TokenId>(t), static_cast<TokenId>(i)};
        const auto id = harness.loop->Submit(harness.Request(prompt, 30, sink));
        sinks[t].push_back(sink);
        if (!id.ok()) continue;
        if (i % 3 == 1) {
          if (i % 2 == 0) sink->WaitForTokens(1);
          harness.loop->Cancel(*id, absl::CancelledError("gone"));
        } else if (i % 3 == 2) {
          sink->WaitForTokens(2);
          harness.loop->Finish(*id, FinishReason::kStopString, 2);
        }
        if (i % 10 == 0) (void)harness.loop->GetStats(true);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  REQUIRE(harness.loop->WaitUntilIdle(harness.clock.Now() + kPatience));
  for (int t = 0; t < kNumThreads; ++t) {
    for (int i = 0; i < kNumPerThread; ++i) {
      const RecordingSink& sink = *sinks[t][i];
      CHECK(sink.num_finishes() == 1);
      CHECK(!sink.late_call());
      const std::vector<TokenId> expected = Expected({static_cast<TokenId>(t), static_cast<TokenId>(i)}, 30);
      const std::vector<TokenId> tokens = sink.token_ids();
      if (i % 3 == 0) CHECK(tokens == expected);
      CHECK(std::ranges::equal(tokens, std::span(expected).first(tokens.size())));
    }
  }
  const EngineStats stats = harness.loop->GetStats(false);
  CHECK(stats.num_finished_requests == kNumThreads * kNumPerThread);
  CHECK(stats.cache.num_used_blocks == 0);
  CHECK(stats.num_invariant_violations == 0);
}

}  // namespace
}  // namespace quire
