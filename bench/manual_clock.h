#pragma once

#include "engine/base/clock.h"

namespace quire {

// Virtual time: it moves only when the simulation moves it. Not thread-safe; the simulation has one thread.
class ManualClock : public Clock {
 public:
  TimePoint Now() const override { return now_; }
  void Set(TimePoint now) { now_ = now; }

 private:
  TimePoint now_;
};

}  // namespace quire
