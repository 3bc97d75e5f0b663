#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/mutator.h"

namespace quire::testing {

struct FuzzLimits {
  // For one input: processor time, which a busy machine does not take from it, and time, ten times as long.
  std::chrono::seconds hang = std::chrono::seconds(30);
  int64_t resident_bytes = int64_t{2} << 30;  // of the whole process
};

// The input that ended the process, or held it.
struct FuzzFinding {
  uint64_t index;
  std::string what;
};

struct FuzzResult {
  uint64_t num_inputs = 0;
  std::array<uint64_t, kMaxFuzzStages> num_passed = {};  // by stage
  std::optional<FuzzFinding> finding;
};

// Gives a target the inputs [first, first + num_inputs), in a process of its own, so that whatever ends that process is
// a finding that names its input: a signal, a sanitizer, an exception, exit. `on_progress` gets the next input's number
// every few seconds.
FuzzResult RunFuzz(const std::function<std::unique_ptr<FuzzTarget>()>& make_target, const Mutator& mutator,
                   uint64_t first, uint64_t num_inputs, const FuzzLimits& limits,
                   const std::function<void(uint64_t)>& on_progress);

}  // namespace quire::testing
