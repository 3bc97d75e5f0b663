#pragma once

#include <cstdint>

#include "engine/base/clock.h"
#include "engine/runtime/engine_loop.h"

namespace quire {

// Tells an engine that hangs from one that works or has nothing to do. Pure: told the engine's progress and the time.
class StallDetector {
 public:
  // Steps predicted to take long get this many times their prediction.
  static constexpr double kPredictedSteps = 5;

  explicit StallDetector(double stall_seconds) : stall_seconds_(stall_seconds) {}

  // True while requests are open and no step has ended for stall_seconds, or for kPredictedSteps predicted steps if
  // that is longer. In the order of time.
  bool Observe(const EngineProgress& progress, TimePoint now);

  // Since a step ended or there was nothing to do, as of the last observation.
  double seconds_without_progress() const { return ToSeconds(observed_ - progressed_); }

 private:
  double stall_seconds_;
  int64_t num_steps_ = -1;
  TimePoint progressed_;
  TimePoint observed_;
};

}  // namespace quire
