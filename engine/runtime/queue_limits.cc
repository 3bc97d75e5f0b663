#include "engine/runtime/queue_limits.h"

#include <algorithm>
#include <cmath>
#include <format>
#include <string>

#include "engine/base/status.h"

namespace quire {
namespace {

int64_t PartFor(const QueueCandidate& candidate, int64_t limit) {
  return candidate.is_newcomer ? limit : limit - limit / kNewcomersShare;
}

absl::Status CheckDeadline(const QueueState& queue, const QueueCandidate& candidate) {
  const double rate = queue.drained_tokens_per_second;
  const bool may_overtake = candidate.priority < 0 || candidate.is_newcomer;
  if (!candidate.seconds_to_deadline || may_overtake || rate <= 0) return absl::OkStatus();
  const double wait_seconds = static_cast<double>(queue.num_tokens) / rate;
  if (wait_seconds <= *candidate.seconds_to_deadline) return absl::OkStatus();
  return absl::DeadlineExceededError(std::format(
      "the deadline in {:.3f} s can't be met: {} tokens of {} requests wait ahead, {:.3f} s at the measured "
      "{:.1f} tokens/s",
      *candidate.seconds_to_deadline, queue.num_tokens, queue.num_requests, wait_seconds, rate));
}

}  // namespace

QueueState CountWaiting(const QueuedWork& left_waiting, const QueuedWork& arrived, int64_t num_free_seats,
                        double drained_tokens_per_second) {
  QueueState state = {.num_requests = left_waiting.num_requests,
                      .num_tokens = left_waiting.num_tokens,
                      .drained_tokens_per_second = drained_tokens_per_second};
  // Whoever was left waiting misses something else than a seat.
  const int64_t num_seats = left_waiting.num_requests == 0 ? std::max<int64_t>(0, num_free_seats) : 0;
  if (arrived.num_requests > num_seats) {
    state.num_requests += arrived.num_requests - num_seats;
    state.num_tokens += arrived.num_tokens;  // nobody knows yet whose will wait
  }
  return state;
}

std::chrono::milliseconds RetryDelayFor(int64_t num_tokens, double drained_tokens_per_second) {
  if (drained_tokens_per_second <= 0) return kUnknownRetryDelay;
  const double milliseconds = std::ceil(1000 * static_cast<double>(num_tokens) / drained_tokens_per_second);
  // Compared before it is converted: it may be beyond any integer.
  if (milliseconds >= static_cast<double>(kMaxRetryDelay.count())) return kMaxRetryDelay;
  return std::max(kMinRetryDelay, std::chrono::milliseconds(static_cast<int64_t>(milliseconds)));
}

absl::Status CheckQueue(const QueueLimits& limits, const QueueState& queue, const QueueCandidate& candidate) {
  if (queue.num_requests == 0) return absl::OkStatus();
  const int64_t max_requests = PartFor(candidate, limits.max_queued_requests);
  const int64_t max_tokens = PartFor(candidate, limits.max_queued_tokens);
  const auto kept = [](int64_t limit, int64_t part) {
    return part < limit ? StrCat(", of which ", limit - part, " are kept for tenants without requests") : std::string();
  };
  if (queue.num_requests >= max_requests) {
    // Room for one: the average of those that wait must leave.
    return Overloaded(
        StrCat("the queue is full: ", queue.num_requests, " requests wait, at most ", limits.max_queued_requests,
               " may (max_queued_requests", kept(limits.max_queued_requests, max_requests), ")"),
        RetryDelayFor(queue.num_tokens / queue.num_requests, queue.drained_tokens_per_second));
  }
  // Compared by difference: a sum may overflow.
  if (candidate.num_tokens > max_tokens - queue.num_tokens) {
    const int64_t excess = queue.num_tokens - (max_tokens - candidate.num_tokens);
    return Overloaded(StrCat("the queue is full: ", queue.num_tokens, " tokens wait, with this request's ",
                             candidate.num_tokens, " they were more than ", limits.max_queued_tokens,
                             " (max_queued_tokens", kept(limits.max_queued_tokens, max_tokens), ")"),
                      RetryDelayFor(std::min(excess, queue.num_tokens), queue.drained_tokens_per_second));
  }
  return limits.refuse_late_requests ? CheckDeadline(queue, candidate) : absl::OkStatus();
}

}  // namespace quire
