// What may wait, how it is refused, and how soon ends give blocks back. Time stands still unless a test moves it.
#include <chrono>
#include <memory>
#include <string>

#include "catch2/catch_test_macros.hpp"
#include "engine/base/status.h"
#include "engine/runtime/engine_loop.h"
#include "tests/engine/runtime/engine_loop_harness.h"
#include "tests/support/fake_clock.h"

namespace quire {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using testing::FakeEngineConfig;
using testing::RecordingSink;

FakeEngineConfig AtOnce(int64_t max_num_seqs) {
  FakeEngineConfig config;
  config.max_num_seqs = max_num_seqs;
  return config;
}

struct Harness : testing::EngineLoopHarness<testing::FakeClock> {
  explicit Harness(const QueueLimits& limits = {}, int64_t max_num_seqs = 1)
      : EngineLoopHarness(AtOnce(max_num_seqs), /*gated=*/true, limits) {}

  absl::Status TrySubmit(std::vector<TokenId> tokens, std::optional<Duration> timeout = {}, int32_t priority = 0) {
    GenerationRequest request = Request(tokens, 1, std::make_shared<RecordingSink>());
    request.priority = priority;
    if (timeout) request.deadline = clock.Now() + *timeout;
    return loop->Submit(std::move(request)).status();
  }
  void WaitUntilIdle() { REQUIRE(loop->WaitUntilIdle(std::chrono::steady_clock::now() + std::chrono::minutes(4))); }

  // Ends inside a step, with one request running, none waiting, and a queue measured to empty by 1.5 tokens a second.
  void MeasureDrain() {
    Submit(1);
    gate.WaitUntilInside();
    Submit(1);
    Submit(1);
    gate.GoToNextStep();
    clock.Advance(seconds(2));  // one request of three tokens waits
    gate.GoToNextStep();
  }
};

bool Mentions(const absl::Status& status, const std::string& words) {
  return std::string(status.message()).find(words) != std::string::npos;
}

TEST_CASE("a queue full by requests refuses with a delay, and takes more when it has emptied") {
  Harness harness({.max_queued_requests = 2});
  harness.Submit(1);
  harness.gate.WaitUntilInside();
  harness.Submit(1);
  harness.Submit(1);
  const absl::Status refused = harness.TrySubmit(harness.prompt);
  CHECK(refused.code() == absl::StatusCode::kResourceExhausted);
  CHECK(Mentions(refused, "2 requests wait, at most 2 may (max_queued_requests)"));
  CHECK(RetryDelayOf(refused) == kUnknownRetryDelay);
  harness.gate.Open();
  harness.WaitUntilIdle();
  harness.Submit(1)->WaitForFinish();
}

TEST_CASE("a flood that fills the queue leaves room for a tenant that has no request, once it has none") {
  Harness harness({.max_queued_requests = 8});
  harness.Submit(1);
  harness.gate.WaitUntilInside();
  for (int i = 0; i < 7; ++i) harness.Submit(1);
  CHECK(harness.TrySubmit(harness.prompt).code() == absl::StatusCode::kResourceExhausted);
  const auto submit_small = [&] {
    GenerationRequest request = harness.Request(harness.prompt, 1, std::make_shared<RecordingSink>());
    request.tenant = "small";
    return harness.loop->Submit(std::move(request)).status();
  };
  CHECK(submit_small().ok());
  CHECK(submit_small().code() == absl::StatusCode::kResourceExhausted);
  harness.gate.Open();
  harness.WaitUntilIdle();
  // All have ended: each tenant is new again.
  CHECK(submit_small().ok());
  harness.WaitUntilIdle();
}

TEST_CASE("a queue full by tokens refuses, but takes any size when nothing waits") {
  Harness harness({.max_queued_tokens = 5});
  harness.Submit(1);
  harness.gate.WaitUntilInside();
  CHECK(harness.TrySubmit({1, 2, 3, 4, 5, 6, 7}).ok());
  const absl::Status refused = harness.TrySubmit({1});
  CHECK(refused.code() == absl::StatusCode::kResourceExhausted);
  CHECK(Mentions(refused, "max_queued_tokens"));
  CHECK(RetryDelayOf(refused).has_value());
  harness.gate.Open();
  harness.WaitUntilIdle();
}

TEST_CASE("requests that run, or that the next step can run, do not count as queued") {
  Harness harness({.max_queued_requests = 1}, /*max_num_seqs=*/4);
  for (int i = 0; i < 4; ++i) harness.Submit(5);  // into an idle engine, faster than it takes them
  harness.gate.WaitUntilInside();
  harness.Submit(5);
  CHECK(harness.TrySubmit(harness.prompt).code() == absl::StatusCode::kResourceExhausted);
  harness.gate.GoToNextStep();
  CHECK(harness.TrySubmit(harness.prompt).code() == absl::StatusCode::kResourceExhausted);
  harness.gate.Open();
  harness.WaitUntilIdle();
}

TEST_CASE("the retry delay follows the measured rate") {
  Harness harness({.max_queued_requests = 2});
  harness.MeasureDrain();
  harness.Submit(1);
  harness.Submit(1);
  CHECK(RetryDelayOf(harness.TrySubmit(harness.prompt)) == milliseconds(2000));
  harness.gate.Open();
  harness.WaitUntilIdle();
}

TEST_CASE("late requests are refused at once only if asked, and only if the rate says so") {
  Harness strict({.refuse_late_requests = true});
  strict.MeasureDrain();
  CHECK(strict.TrySubmit(strict.prompt, seconds(1)).ok());  // nothing is ahead
  const absl::Status late = strict.TrySubmit(strict.prompt, seconds(1));
  CHECK(late.code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(Mentions(late, "3 tokens of 1 requests wait ahead, 2.000 s at the measured 1.5 tokens/s"));
  CHECK(strict.TrySubmit(strict.prompt, seconds(1), /*priority=*/-1).ok());
  CHECK(strict.TrySubmit(strict.prompt, seconds(30)).ok());
  strict.gate.Open();
  strict.WaitUntilIdle();

  Harness lenient;
  lenient.MeasureDrain();
  lenient.Submit(1);
  CHECK(lenient.TrySubmit(lenient.prompt, seconds(1)).ok());
  lenient.gate.Open();
  lenient.WaitUntilIdle();
}

TEST_CASE("a deadline ends a request in the queue and one that generates, within a step") {
  Harness harness;
  const auto with_deadline = [&](const std::shared_ptr<RecordingSink>& sink, Duration timeout) {
    GenerationRequest request = harness.Request(harness.prompt, 50, sink);
    request.deadline = harness.clock.Now() + timeout;
    REQUIRE(harness.loop->Submit(std::move(request)).ok());
  };
  const auto running = std::make_shared<RecordingSink>();
  with_deadline(running, seconds(3));
  harness.gate.WaitUntilInside();
  const auto waiting = std::make_shared<RecordingSink>();
  with_deadline(waiting, seconds(1));
  const auto patient = harness.Submit(2);

  harness.clock.Advance(seconds(2));
  harness.gate.GoToNextStep();
  CHECK(waiting->num_finishes() == 1);
  CHECK(waiting->result().status.code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(waiting->token_ids().empty());
  CHECK(running->num_finishes() == 0);

  harness.clock.Advance(seconds(2));
  harness.gate.GoToNextStep();
  CHECK(running->num_finishes() == 1);
  CHECK(running->result().status.code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(running->token_ids().size() == 2);  // what was made until then has been sent

  harness.gate.Open();
  patient->WaitForFinish();
  CHECK(patient->result().status.ok());
  const EngineStats stats = harness.loop->GetStats(false);
  CHECK(stats.release_steps.num_values() == 2);
  CHECK(stats.release_steps.max() == 1);
  CHECK(stats.release_seconds.sum() == 2.0);  // each a second after its deadline
}

TEST_CASE("cancellations and stops free their blocks within one step, and the time is measured") {
  Harness harness({}, /*max_num_seqs=*/8);
  RequestId cancelled_id{};
  RequestId stopped_id{};
  const auto cancelled = harness.Submit(50, &cancelled_id);
  const auto stopped = harness.Submit(50, &stopped_id);
  harness.gate.WaitUntilInside();
  harness.loop->Cancel(cancelled_id, absl::CancelledError("gone"));
  harness.clock.Advance(milliseconds(20));
  harness.loop->Finish(stopped_id, FinishReason::kStopString, 1);
  harness.loop->Cancel(cancelled_id, absl::CancelledError("gone twice"));
  harness.clock.Advance(milliseconds(10));
  harness.gate.Open();
  cancelled->WaitForFinish();
  stopped->WaitForFinish();
  const EngineStats stats = harness.loop->GetStats(false);
  CHECK(stats.cache.num_used_blocks == 0);
  CHECK(stats.release_steps.num_values() == 2);  // the second cancellation found nothing to free
  CHECK(stats.release_steps.max() == 1);
  CHECK(stats.release_seconds.num_values() == 2);
  CHECK(stats.release_seconds.max() == 0.03);
}

TEST_CASE("progress tells the stage that holds the engine") {
  Harness harness;
  CHECK(harness.loop->progress().num_open_requests == 0);
  harness.Submit(2);
  harness.gate.WaitUntilInside();
  EngineProgress progress = harness.loop->progress();
  CHECK(progress.stage == StepStage::kExecute);
  CHECK(progress.num_steps == 0);
  CHECK(progress.num_open_requests == 1);
  harness.clock.Advance(milliseconds(500));
  harness.gate.GoToNextStep();
  progress = harness.loop->progress();
  CHECK(progress.num_steps == 1);
  CHECK(progress.predicted_step_seconds >= 0.5);
  harness.gate.Open();
  harness.WaitUntilIdle();
  CHECK(harness.loop->progress().num_open_requests == 0);
}

TEST_CASE("cached prefixes can be forgotten") {
  Harness harness;
  harness.gate.Open();
  CHECK(harness.TrySubmit({1, 2, 3, 4, 5, 6, 7, 8, 9}).ok());
  harness.WaitUntilIdle();
  CHECK(harness.loop->GetStats(false).cache.num_cached_blocks == 2);
  CHECK(harness.loop->ClearPrefixCache() == 2);
  CHECK(harness.loop->GetStats(false).cache.num_cached_blocks == 0);
  CHECK(harness.loop->ClearPrefixCache() == 0);
}

}  // namespace
}  // namespace quire
