#pragma once

#include <chrono>

namespace quire {

using TimePoint = std::chrono::steady_clock::time_point;
using Duration = std::chrono::steady_clock::duration;

// Monotonic time, injected so that deadlines and timings are tested without sleeping. Thread-safe.
class Clock {
 public:
  virtual ~Clock() = default;
  virtual TimePoint Now() const = 0;
};

// The process's steady clock.
class SteadyClock : public Clock {
 public:
  TimePoint Now() const override;
};

inline double ToSeconds(Duration duration) { return std::chrono::duration<double>(duration).count(); }

inline Duration ToDuration(double seconds) {
  return std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds));
}

}  // namespace quire
