#include "server/security/rate_limiter.h"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <string>

#include "engine/base/status.h"
#include "server/error_reason.h"
#include "tests/support/fake_clock.h"

namespace quire::testing {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

RateLimits Requests(int64_t per_minute) { return {.requests_per_minute = per_minute, .tokens_per_minute = {}}; }
RateLimits Tokens(int64_t per_minute) { return {.requests_per_minute = {}, .tokens_per_minute = per_minute}; }

TEST_CASE("a minute's requests are taken at once, and then one as often as the limit allows") {
  FakeClock clock;
  RateLimiter limiter({{"a", Requests(6)}}, &clock);
  for (int i = 0; i < 6; ++i) CHECK(limiter.Admit("a").ok());
  const absl::Status refused = limiter.Admit("a");
  CHECK(refused.code() == absl::StatusCode::kResourceExhausted);
  CHECK(ReasonOf(refused) == std::string("RATE_LIMITED"));
  CHECK(RetryDelayOf(refused) == seconds(10));
  clock.Advance(milliseconds(9900));
  CHECK_FALSE(limiter.Admit("a").ok());
  clock.Advance(milliseconds(200));
  CHECK(limiter.Admit("a").ok());
  CHECK_FALSE(limiter.Admit("a").ok());
  clock.Advance(std::chrono::hours(1));  // no more than a minute's is kept
  for (int i = 0; i < 6; ++i) CHECK(limiter.Admit("a").ok());
  CHECK_FALSE(limiter.Admit("a").ok());
}

TEST_CASE("requests that go together are admitted together, or not at all") {
  FakeClock clock;
  RateLimiter limiter({{"a", Requests(6)}}, &clock);
  CHECK(limiter.Admit("a", 5).ok());
  CHECK(RetryDelayOf(limiter.Admit("a", 5)) == seconds(40));
  CHECK(limiter.Admit("a", 1).ok());
  const absl::Status never = limiter.Admit("a", 7);
  CHECK(never.code() == absl::StatusCode::kInvalidArgument);
  CHECK(FieldOf(never) == "n");
}

TEST_CASE("tokens count when they are known: what went past the limit is waited for") {
  FakeClock clock;
  RateLimiter limiter({{"a", Tokens(60)}}, &clock);
  CHECK(limiter.Admit("a").ok());
  limiter.CountTokens("a", 90);
  const absl::Status refused = limiter.Admit("a");
  CHECK(RetryDelayOf(refused) == seconds(31));
  clock.Advance(seconds(32));
  CHECK(limiter.Admit("a").ok());
}

TEST_CASE("each tenant has its own allowance, the star's too, and those without a limit have none") {
  FakeClock clock;
  RateLimiter limiter({{"free", {}}, {"*", Requests(1)}}, &clock);
  for (int i = 0; i < 100; ++i) CHECK(limiter.Admit("free").ok());
  CHECK(limiter.Admit("a").ok());
  CHECK_FALSE(limiter.Admit("a").ok());
  CHECK(limiter.Admit("b").ok());
  RateLimiter none({}, &clock);
  for (int i = 0; i < 100; ++i) CHECK(none.Admit("a").ok());
}

TEST_CASE("callers who name ever new tenants do not make old ones forgotten") {
  FakeClock clock;
  RateLimiter limiter({{"*", Requests(1)}}, &clock);
  for (int i = 0; i < 10000; ++i) CHECK(limiter.Admit(std::to_string(i)).ok());
  CHECK_FALSE(limiter.Admit("0").ok());
}

}  // namespace
}  // namespace quire::testing
