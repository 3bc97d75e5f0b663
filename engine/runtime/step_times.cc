#include "engine/runtime/step_times.h"

#include <algorithm>

namespace quire {

StepTimes::StepTimes()
    : summary_{.seconds = Histogram({0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10}),
               .tokens = Histogram({1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048})} {}

void StepTimes::Enter(StepStage stage, TimePoint now) {
  const auto part = std::ranges::find(kStepParts, stage);
  if (part == kStepParts.end()) return;
  last_part_ = static_cast<size_t>(part - kStepParts.begin());
  begins_[last_part_] = now;
}

void StepTimes::End(TimePoint now, int64_t num_tokens) {
  summary_.seconds.Add(ToSeconds(now - begins_.front()));
  summary_.tokens.Add(static_cast<double>(num_tokens));
  for (size_t part = 0; part <= last_part_; ++part) {
    const TimePoint end = part == last_part_ ? now : begins_[part + 1];
    summary_.part_seconds[part] += ToSeconds(end - begins_[part]);
  }
}

}  // namespace quire
