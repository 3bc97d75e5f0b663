#include "engine/runtime/engine_loop.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <memory>
#include <thread>
#include <utility>
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

TEST_CASE(
    "tenants' limits are changed while requests run: for the next request at once, for the waiting by the next step") {
  Harness harness({}, /*gated=*/true);
  const auto running = harness.Submit(50);
  harness.gate.WaitUntilInside();
  const auto waiting = harness.Submit(50);
  REQUIRE(harness.loop->SetTenantLimits({{"*", {.weight = 3, .max_running_requests = 1, .max_kv_blocks = 4}}}).ok());
  // 3 and 50 tokens need 13 blocks of 4.
  const auto refused = harness.loop->Submit(harness.Request(kPrompt, 50, std::make_shared<RecordingSink>()));
  CHECK(FieldOf(refused.status()) == "sampling.max_tokens");
  const auto fitting = harness.Submit({});
  harness.gate.GoToNextStep();
  CHECK(running->num_finishes() + waiting->num_finishes() + fitting->num_finishes() == 0);
  harness.gate.Open();
  for (const auto& sink : {running, waiting, fitting}) sink->WaitForFinish();
  CHECK(running->token_ids() == Expected(kPrompt, 50));
  CHECK(waiting->token_ids() == Expected(kPrompt, 50));
  CHECK(fitting->token_ids() == Expected(kPrompt, 4 * 4 + 1 - 3));
}

TEST_CASE("tenants' limits out of range are refused, and those before stay") {
  Harness harness;
  REQUIRE(
      harness.loop->SetTenantLimits({{"default", {.weight = 1, .max_running_requests = {}, .max_kv_blocks = 4}}}).ok());
  const absl::Status status =
      harness.loop->SetTenantLimits({{"default", {.weight = 0, .max_running_requests = {}, .max_kv_blocks = {}}}});
  CHECK(FieldOf(status) == "tenants.default.weight");
  const auto refused = harness.loop->Submit(harness.Request(kPrompt, 50, std::make_shared<RecordingSink>()));
  CHECK(FieldOf(refused.status()) == "sampling.max_tokens");
}

// Calls a function when the test's own thread asks for the time.
class ClockWithHook : public Clock {
 public:
  TimePoint Now() const override {
    if (std::this_thread::get_id() == owner_ && hook_) std::exchange(hook_, nullptr)();
    return clock_.Now();
  }
  void OnNextLook(std::function<void()> hook) { hook_ = std::move(hook); }

 private:
  const SteadyClock clock_;
  const std::thread::id owner_ = std::this_thread::get_id();
  mutable std::function<void()> hook_;  // the owner's
};

TEST_CASE("limits that change while a request is being submitted hold for it") {
  testing::EngineLoopHarness<ClockWithHook> harness;
  GenerationRequest request = harness.Request(kPrompt, 50, std::make_shared<RecordingSink>());
  request.deadline = harness.clock.Now() + kPatience;
  // Submit looks at the deadline after the limits.
  harness.clock.OnNextLook([&] {
    REQUIRE(harness.loop->SetTenantLimits({{"*", {.weight = 1, .max_running_requests = {}, .max_kv_blocks = 4}}}).ok());
  });
  CHECK(FieldOf(harness.loop->Submit(std::move(request)).status()) == "sampling.max_tokens");
}

TEST_CASE("no request that is accepted is lost, however often the limits change meanwhile") {
  Harness harness;
  std::atomic<bool> is_over = false;
  std::thread changer([&] {
    for (int64_t i = 0; !is_over; ++i) {
      const TenantLimits limits = {.weight = 1, .max_running_requests = {}, .max_kv_blocks = 1 + i % 8};
      if (!harness.loop->SetTenantLimits({{"*", limits}}).ok()) std::abort();
    }
  });
  std::vector<std::shared_ptr<RecordingSink>> accepted;
  for (int i = 0; i < 2000; ++i) {
    auto sink = std::make_shared<RecordingSink>();
    if (harness.loop->Submit(harness.Request(kPrompt, 14, sink)).ok()) accepted.push_back(std::move(sink));
  }
  is_over = true;
  changer.join();
  REQUIRE(harness.loop->WaitUntilIdle(harness.clock.Now() + kPatience));
  CHECK_FALSE(accepted.empty());
  for (const auto& sink : accepted) REQUIRE(sink->result().status.ok());
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
