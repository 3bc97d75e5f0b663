#pragma once

#include <string>
#include <string_view>

#include "engine/base/clock.h"

namespace quire {

// Where the engine's thread stands.
enum class StepStage { kBetweenSteps, kSchedule, kExecute, kSample, kEmit };

constexpr std::string_view ToString(StepStage stage) {
  switch (stage) {
    case StepStage::kBetweenSteps: return "between steps";
    case StepStage::kSchedule: return "schedule";
    case StepStage::kExecute: return "execute";
    case StepStage::kSample: return "sample";
    case StepStage::kEmit: return "emit";
  }
  return "unknown";
}

// Told by the engine, on its thread, what happens within a step.
class EngineObserver {
 public:
  virtual ~EngineObserver() = default;
  // A stage begins. From kExecute on it is settled who waits and who runs.
  virtual void OnStage(StepStage stage) = 0;
  // A request of `tenant` has ended, whatever its end.
  virtual void OnEnd(const std::string& tenant) = 0;
  // A request that had this deadline has just ended by it: its blocks are free.
  virtual void OnDeadlineExpired(TimePoint deadline) = 0;
};

}  // namespace quire
