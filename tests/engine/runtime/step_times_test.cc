#include "engine/runtime/step_times.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_floating_point.hpp>
#include <chrono>

namespace quire {
namespace {

using Catch::Matchers::WithinAbs;
using std::chrono::milliseconds;

TEST_CASE("a step's time is the sum of its parts") {
  StepTimes times;
  TimePoint now{};
  times.Enter(StepStage::kSchedule, now);
  times.Enter(StepStage::kExecute, now += milliseconds(1));
  times.Enter(StepStage::kSample, now += milliseconds(20));
  times.Enter(StepStage::kEmit, now += milliseconds(3));
  times.End(now += milliseconds(4), 17);
  const auto& [schedule, execute, sample, emit] = times.summary().part_seconds;
  CHECK_THAT(schedule, WithinAbs(0.001, 1e-9));
  CHECK_THAT(execute, WithinAbs(0.020, 1e-9));
  CHECK_THAT(sample, WithinAbs(0.003, 1e-9));
  CHECK_THAT(emit, WithinAbs(0.004, 1e-9));
  CHECK_THAT(times.summary().seconds.sum(), WithinAbs(0.028, 1e-9));
  CHECK(times.summary().tokens.sum() == 17);
}

TEST_CASE("a step that found nothing to compute counts for nothing, and one that failed for the parts that it had") {
  StepTimes times;
  TimePoint now{};
  times.Enter(StepStage::kSchedule, now);
  times.Enter(StepStage::kSchedule, now += milliseconds(500));
  times.Enter(StepStage::kExecute, now += milliseconds(1));
  times.End(now += milliseconds(2), 5);
  const auto& [schedule, execute, sample, emit] = times.summary().part_seconds;
  CHECK(times.summary().seconds.num_values() == 1);
  CHECK_THAT(schedule, WithinAbs(0.001, 1e-9));
  CHECK_THAT(execute, WithinAbs(0.002, 1e-9));
  CHECK(sample == 0);
  CHECK(emit == 0);
}

}  // namespace
}  // namespace quire
