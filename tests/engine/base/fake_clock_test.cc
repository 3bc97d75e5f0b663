#include "tests/support/fake_clock.h"

#include <catch2/catch_test_macros.hpp>
#include <chrono>

#include "engine/base/clock.h"

namespace quire {
namespace {

using std::chrono::milliseconds;

TEST_CASE("a fake clock moves only when told") {
  testing::FakeClock clock;
  const TimePoint start = clock.Now();
  CHECK(clock.Now() == start);
  clock.Advance(milliseconds(250));
  CHECK(ToSeconds(clock.Now() - start) == 0.25);
  clock.Set(start);
  CHECK(clock.Now() == start);
  CHECK(start - milliseconds(1) > TimePoint());
}

TEST_CASE("the steady clock never goes back") {
  const SteadyClock clock;
  TimePoint before = clock.Now();
  for (int i = 0; i < 1000; ++i) {
    const TimePoint now = clock.Now();
    REQUIRE(now >= before);
    before = now;
  }
}

}  // namespace
}  // namespace quire
