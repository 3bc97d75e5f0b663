#include "engine/runtime/queue_limits.h"

#include <limits>
#include <string>
#include <utility>

#include "catch2/catch_test_macros.hpp"
#include "engine/base/status.h"

namespace quire {
namespace {

constexpr QueueLimits kLimits = {.max_queued_requests = 3, .max_queued_tokens = 100, .refuse_late_requests = true};

absl::StatusCode Check(const QueueState& queue, const QueueCandidate& candidate, const QueueLimits& limits = kLimits) {
  return CheckQueue(limits, queue, candidate).code();
}

TEST_CASE("a queue has room up to its limits") {
  CHECK(Check({.num_requests = 2, .num_tokens = 78}, {.num_tokens = 10}) == absl::StatusCode::kOk);
  CHECK(Check({.num_requests = 3, .num_tokens = 3}, {.num_tokens = 1}) == absl::StatusCode::kResourceExhausted);
  CHECK(Check({.num_requests = 2, .num_tokens = 79}, {.num_tokens = 10}) == absl::StatusCode::kResourceExhausted);
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  CHECK(Check({.num_requests = 1, .num_tokens = 1}, {.num_tokens = kMost}) == absl::StatusCode::kResourceExhausted);
}

TEST_CASE("an eighth of the queue is kept for tenants without requests, who are never late") {
  const QueueLimits limits = {.max_queued_requests = 16, .max_queued_tokens = 160, .refuse_late_requests = true};
  const QueueCandidate another = {.num_tokens = 1};
  const QueueCandidate newcomer = {.num_tokens = 1, .is_newcomer = true, .seconds_to_deadline = 0.1};
  CHECK(Check({.num_requests = 13, .num_tokens = 13}, another, limits) == absl::StatusCode::kOk);
  CHECK(Check({.num_requests = 14, .num_tokens = 14}, another, limits) == absl::StatusCode::kResourceExhausted);
  CHECK(Check({.num_requests = 15, .num_tokens = 15, .drained_tokens_per_second = 1}, newcomer, limits) ==
        absl::StatusCode::kOk);
  CHECK(Check({.num_requests = 16, .num_tokens = 16}, newcomer, limits) == absl::StatusCode::kResourceExhausted);
  CHECK(Check({.num_requests = 2, .num_tokens = 139}, another, limits) == absl::StatusCode::kOk);
  CHECK(Check({.num_requests = 2, .num_tokens = 140}, another, limits) == absl::StatusCode::kResourceExhausted);
  CHECK(Check({.num_requests = 2, .num_tokens = 159}, newcomer, limits) == absl::StatusCode::kOk);
  const absl::Status refused = CheckQueue(limits, {.num_requests = 14, .num_tokens = 14}, another);
  CHECK(std::string(refused.message()).find("of which 2 are kept for tenants without requests") != std::string::npos);
}

TEST_CASE("where nothing waits any size is taken, and nothing is late") {
  CHECK(Check({}, {.num_tokens = 1000}) == absl::StatusCode::kOk);
  CHECK(Check({.drained_tokens_per_second = 1}, {.num_tokens = 1000, .seconds_to_deadline = 0.1}) ==
        absl::StatusCode::kOk);
}

TEST_CASE("what comes waits only as far as no seat is free") {
  const QueuedWork none;
  const auto waits = [](const QueuedWork& left, const QueuedWork& arrived, int64_t num_free_seats) {
    const QueueState state = CountWaiting(left, arrived, num_free_seats, 0);
    return std::pair(state.num_requests, state.num_tokens);
  };
  CHECK(waits(none, {3, 30}, 3) == std::pair<int64_t, int64_t>(0, 0));
  CHECK(waits(none, {5, 50}, 3) == std::pair<int64_t, int64_t>(2, 50));
  CHECK(waits(none, {3, 30}, 0) == std::pair<int64_t, int64_t>(3, 30));
  // Who was left waiting beside free seats misses blocks, and so will those who come.
  CHECK(waits({1, 10}, {3, 30}, 3) == std::pair<int64_t, int64_t>(4, 40));
}

TEST_CASE("a refusal says when there will be room") {
  // The mean of those that wait must leave: 30 tokens at 10 a second.
  CHECK(RetryDelayOf(CheckQueue(kLimits, {.num_requests = 3, .num_tokens = 90, .drained_tokens_per_second = 10},
                                {.num_tokens = 1})) == std::chrono::milliseconds(3000));
  // What is too much must leave: 17 tokens past the 88 that are not kept for newcomers.
  CHECK(RetryDelayOf(CheckQueue(kLimits, {.num_requests = 2, .num_tokens = 95, .drained_tokens_per_second = 10},
                                {.num_tokens = 10})) == std::chrono::milliseconds(1700));
  // All must leave, and then any size is taken.
  CHECK(RetryDelayOf(CheckQueue(kLimits, {.num_requests = 2, .num_tokens = 20, .drained_tokens_per_second = 10},
                                {.num_tokens = 5000})) == std::chrono::milliseconds(2000));
}

TEST_CASE("retry delays are bounded") {
  CHECK(RetryDelayFor(10, 0) == kUnknownRetryDelay);
  CHECK(RetryDelayFor(0, 10) == kMinRetryDelay);
  CHECK(RetryDelayFor(1, 1e6) == kMinRetryDelay);
  CHECK(RetryDelayFor(10, 4) == std::chrono::milliseconds(2500));
  CHECK(RetryDelayFor(std::numeric_limits<int64_t>::max(), 1e-300) == kMaxRetryDelay);
}

TEST_CASE("a deadline that the tokens ahead use up is refused") {
  const QueueState queue = {.num_requests = 2, .num_tokens = 50, .drained_tokens_per_second = 10};
  CHECK(Check(queue, {.num_tokens = 1, .seconds_to_deadline = 5.0}) == absl::StatusCode::kOk);
  const absl::Status late = CheckQueue(kLimits, queue, {.num_tokens = 1, .seconds_to_deadline = 4.9});
  CHECK(late.code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(std::string(late.message()).find("5.000 s at the measured 10.0 tokens/s") != std::string::npos);
  CHECK(Check(queue, {.num_tokens = 1, .priority = -1, .seconds_to_deadline = 4.9}) == absl::StatusCode::kOk);
  CHECK(Check(queue, {.num_tokens = 1}) == absl::StatusCode::kOk);
  const QueueState unmeasured = {.num_requests = 2, .num_tokens = 50};
  CHECK(Check(unmeasured, {.num_tokens = 1, .seconds_to_deadline = 0.1}) == absl::StatusCode::kOk);
  QueueLimits lenient = kLimits;
  lenient.refuse_late_requests = false;
  CHECK(Check(queue, {.num_tokens = 1, .seconds_to_deadline = 0.1}, lenient) == absl::StatusCode::kOk);
}

}  // namespace
}  // namespace quire
