#include "engine/runtime/drain_rate.h"

#include <chrono>

#include "catch2/catch_approx.hpp"
#include "catch2/catch_test_macros.hpp"

namespace quire {
namespace {

using Catch::Approx;
using std::chrono::seconds;

TEST_CASE("a rate is unknown until something has left the queue") {
  const TimePoint start(std::chrono::hours(1));
  DrainRate rate(start);
  CHECK(rate.tokens_per_second() == 0);
  rate.Observe(start + seconds(5), 0, true);
  CHECK(rate.tokens_per_second() == 0);
  rate.Observe(start + seconds(10), 100, true);
  CHECK(rate.tokens_per_second() > 0);
}

TEST_CASE("lumps are spread over the time in which requests waited") {
  const TimePoint start(std::chrono::hours(1));
  TimePoint now = start;
  DrainRate rate(start);
  for (int i = 0; i < 100; ++i) rate.Observe(now += seconds(1), i % 5 == 4 ? 50 : 0, true);
  CHECK(rate.tokens_per_second() == Approx(10).epsilon(0.15));
}

TEST_CASE("time without a queue, and what passes it then, counts for nothing") {
  const TimePoint start(std::chrono::hours(1));
  DrainRate rate(start);
  rate.Observe(start + seconds(1), 20, true);
  const double before = rate.tokens_per_second();
  CHECK(before == Approx(20));
  rate.Observe(start + seconds(1000), 1'000'000, false);
  CHECK(rate.tokens_per_second() == before);
}

TEST_CASE("a new rate replaces the old one") {
  const TimePoint start(std::chrono::hours(1));
  TimePoint now = start;
  DrainRate rate(start);
  for (int i = 0; i < 60; ++i) rate.Observe(now += seconds(1), 1000, true);
  for (int i = 0; i < 200; ++i) rate.Observe(now += seconds(1), 10, true);
  CHECK(rate.tokens_per_second() == Approx(10).epsilon(0.2));
}

}  // namespace
}  // namespace quire
