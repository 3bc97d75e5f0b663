#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "absl/status/status.h"

namespace quire {

// What may wait. Meanings and ranges are those of EngineConfig.
struct QueueLimits {
  int64_t max_queued_requests = 1024;
  int64_t max_queued_tokens = 1 << 20;
  bool refuse_late_requests = false;
};

struct QueuedWork {
  int64_t num_requests = 0;
  int64_t num_tokens = 0;
};

// What waits now.
struct QueueState {
  int64_t num_requests = 0;
  int64_t num_tokens = 0;                // of their prompts and outputs so far
  double drained_tokens_per_second = 0;  // measured; 0: not yet
};

// A request at the queue's end.
struct QueueCandidate {
  int64_t num_tokens = 0;
  int32_t priority = 0;                                      // lower runs first
  bool is_newcomer = false;                                  // its tenant has no other request, waiting or running
  std::optional<double> seconds_to_deadline = std::nullopt;  // unset: it has none
};

inline constexpr std::chrono::milliseconds kMinRetryDelay(100);
inline constexpr std::chrono::milliseconds kMaxRetryDelay(60'000);
// While no rate has been measured.
inline constexpr std::chrono::milliseconds kUnknownRetryDelay(1000);

// What waits, of the requests that the last step left waiting and of those that have come since. The latter do not wait
// for room as long as they can take the `num_free_seats` that the last step left, because it would have filled them if
// anyone had been waiting. Pure.
QueueState CountWaiting(const QueuedWork& left_waiting, const QueuedWork& arrived, int64_t num_free_seats,
                        double drained_tokens_per_second);

// When `num_tokens` will have left the queue, within [kMinRetryDelay, kMaxRetryDelay]. Pure.
std::chrono::milliseconds RetryDelayFor(int64_t num_tokens, double drained_tokens_per_second);

// Of the queue, this part is kept for tenants that have no request yet: one tenant's flood never closes the door to
// others.
inline constexpr int64_t kNewcomersShare = 8;

// Whether one more may wait. Pure. RESOURCE_EXHAUSTED, with the delay after which there will be room, if the queue is
// full by requests or by tokens, or, but for newcomers, up to 1 / kNewcomersShare of each; where nothing waits, any
// size is taken, because it would never find more room. DEADLINE_EXCEEDED, with the estimate, if late requests are
// refused and the tokens ahead leave the queue, at the measured rate, only after the deadline. A request of less than
// the default priority or of a newcomer may overtake them, so it is never called late.
absl::Status CheckQueue(const QueueLimits& limits, const QueueState& queue, const QueueCandidate& candidate);

}  // namespace quire
