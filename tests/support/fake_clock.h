#pragma once

#include <atomic>

#include "engine/base/clock.h"

namespace quire::testing {

// A clock that moves only when a test moves it. Starts one hour after the epoch, so that times before the
// start can be told too. Thread-safe.
class FakeClock : public Clock {
 public:
  TimePoint Now() const override { return TimePoint(Duration(now_ticks_.load())); }

  void Advance(Duration by) { now_ticks_ += by.count(); }
  void Set(TimePoint now) { now_ticks_ = now.time_since_epoch().count(); }

 private:
  std::atomic<Duration::rep> now_ticks_ = Duration(std::chrono::hours(1)).count();
};

}  // namespace quire::testing
