#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <string_view>

namespace quire {

// Where a forward pass spends its time. Norms before linear layers are counted together, the last one with the head.
enum class StepPart { kEmbedding, kNorm, kQkv, kRopeKv, kAttention, kOut, kGateUp, kDown, kHead };
inline constexpr size_t kNumStepParts = 9;

constexpr std::string_view ToString(StepPart part) {
  constexpr std::array<std::string_view, kNumStepParts> kNames = {
      "embedding", "norm", "qkv", "rope + kv write", "attention", "o", "gate/up + silu", "down", "head"};
  return kNames[static_cast<size_t>(part)];
}

// Time by part, summed over passes. Every part ends with a barrier, so one worker's clock tells the team's time.
class StepProfile {
 public:
  using Clock = std::chrono::steady_clock;

  // A pass begins.
  void Begin() { last_ = Clock::now(); }
  // The time since Begin or the last End was spent on `part`.
  void End(StepPart part) {
    const Clock::time_point now = Clock::now();
    durations_[static_cast<size_t>(part)] += now - last_;
    last_ = now;
  }
  void Clear() { durations_ = {}; }

  double seconds(StepPart part) const {
    return std::chrono::duration<double>(durations_[static_cast<size_t>(part)]).count();
  }

 private:
  Clock::time_point last_;
  std::array<Clock::duration, kNumStepParts> durations_ = {};
};

// Null profiles cost a comparison.
inline void EndPart(StepProfile* profile, StepPart part) {
  if (profile != nullptr) profile->End(part);
}

}  // namespace quire
