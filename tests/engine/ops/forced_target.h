#pragma once

#include <hwy/targets.h>

#include <cstdint>

namespace quire::testing {

// While it lives, vector code is that of one instruction set, as on a processor that has no better one.
class ForcedTarget {
 public:
  explicit ForcedTarget(int64_t target) { Choose(target); }
  ForcedTarget(const ForcedTarget&) = delete;
  ForcedTarget& operator=(const ForcedTarget&) = delete;
  ~ForcedTarget() { Choose(0); }

  static bool IsPossible(int64_t target) { return (hwy::SupportedTargets() & target) != 0; }

 private:
  static void Choose(int64_t target) {
    hwy::SetSupportedTargetsForTest(target);
    hwy::GetChosenTarget().Update(hwy::SupportedTargets());
  }
};

}  // namespace quire::testing
