#include "server/life/stall_detector.h"

#include <algorithm>

namespace quire {

bool StallDetector::Observe(const EngineProgress& progress, TimePoint now) {
  observed_ = now;
  if (progress.num_open_requests == 0 || progress.num_steps != num_steps_) {
    num_steps_ = progress.num_steps;
    progressed_ = now;
  }
  const double limit_seconds = std::max(stall_seconds_, kPredictedSteps * progress.predicted_step_seconds);
  return seconds_without_progress() >= limit_seconds;
}

}  // namespace quire
