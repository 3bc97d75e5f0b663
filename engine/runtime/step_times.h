#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "engine/base/clock.h"
#include "engine/base/histogram.h"
#include "engine/runtime/engine_observer.h"

namespace quire {

// The stages that a step's time is told by.
inline constexpr std::array kStepParts = {StepStage::kSchedule, StepStage::kExecute, StepStage::kSample,
                                          StepStage::kEmit};

// What the steps since start took.
struct StepSummary {
  Histogram seconds;
  Histogram tokens;                                         // computed by a step
  std::array<double, kStepParts.size()> part_seconds = {};  // together, by kStepParts
};

// Measures steps by their stages, which follow one another without a gap. Allocates nothing while it does.
class StepTimes {
 public:
  StepTimes();

  // A stage begins; kSchedule begins a step.
  void Enter(StepStage stage, TimePoint now);
  // The step has ended, and computed `num_tokens`. A step that found nothing to compute is not ended but begun anew.
  void End(TimePoint now, int64_t num_tokens);

  const StepSummary& summary() const { return summary_; }

 private:
  StepSummary summary_;
  // Of the step under way: when each part began, and the last of them.
  std::array<TimePoint, kStepParts.size()> begins_ = {};
  size_t last_part_ = 0;
};

}  // namespace quire
