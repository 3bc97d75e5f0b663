#pragma once

#include <cstdint>

#include "engine/base/clock.h"

namespace quire {

// How fast the queue empties: tokens of requests that stopped waiting, per second in which requests waited. Both are
// sums that fade with kMemorySeconds, because requests leave in lumps: a ratio of single observations would jump.
class DrainRate {
 public:
  static constexpr double kMemorySeconds = 30;

  explicit DrainRate(TimePoint now) : last_(now) {}

  // Since the last call `num_tokens` have left the queue; `was_waiting`: it held requests all the while. In the order
  // of time.
  void Observe(TimePoint now, int64_t num_tokens, bool was_waiting);

  // 0 before any has left.
  double tokens_per_second() const;

 private:
  TimePoint last_;
  double faded_tokens_ = 0;
  double faded_seconds_ = 0;
};

}  // namespace quire
