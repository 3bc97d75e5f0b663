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

// How many requests are admitted now.
int NumAdmitted(RateLimiter* limiter, const std::string& tenant) {
  int num_admitted = 0;
  while (num_admitted < 1000 && limiter->Admit(tenant).ok()) ++num_admitted;
  return num_admitted;
}

TEST_CASE("new limits hold at once, and what was used of a minute stays used, by its share") {
  FakeClock clock;
  RateLimiter limiter({{"a", Requests(10)}, {"*", Requests(10)}}, &clock);
  for (int i = 0; i < 5; ++i) CHECK(limiter.Admit("a").ok());
  CHECK(limiter.Admit("b").ok());
  limiter.SetLimits({{"a", Requests(60)}, {"*", Requests(20)}});
  CHECK(NumAdmitted(&limiter, "a") == 30);
  CHECK(NumAdmitted(&limiter, "b") == 18);
  CHECK(NumAdmitted(&limiter, "c") == 20);
  clock.Advance(seconds(10));
  limiter.SetLimits({{"a", Requests(6)}, {"*", Requests(20)}});  // the ten of these seconds are a sixth
  CHECK(NumAdmitted(&limiter, "a") == 1);
  CHECK(RetryDelayOf(limiter.Admit("a")) == seconds(10));
}

TEST_CASE("tokens past a limit are still owed after it has changed") {
  FakeClock clock;
  RateLimiter limiter({{"a", Tokens(60)}}, &clock);
  limiter.CountTokens("a", 90);
  limiter.SetLimits({{"a", Tokens(600)}});
  CHECK(RetryDelayOf(limiter.Admit("a")) == milliseconds(30'100));
}

TEST_CASE("limits can come and go") {
  FakeClock clock;
  RateLimiter limiter({}, &clock);
  CHECK(NumAdmitted(&limiter, "a") == 1000);
  limiter.SetLimits({{"a", Requests(2)}});
  CHECK(NumAdmitted(&limiter, "a") == 2);
  limiter.SetLimits({{"a", Tokens(100)}});
  CHECK(NumAdmitted(&limiter, "a") == 1000);
  limiter.SetLimits({{"a", Requests(3)}});
  CHECK(NumAdmitted(&limiter, "a") == 3);
  limiter.SetLimits({});
  CHECK(NumAdmitted(&limiter, "a") == 1000);
}

TEST_CASE("callers who name ever new tenants do not make old ones forgotten") {
  FakeClock clock;
  RateLimiter limiter({{"*", Requests(1)}}, &clock);
  for (int i = 0; i < 10000; ++i) CHECK(limiter.Admit(std::to_string(i)).ok());
  CHECK_FALSE(limiter.Admit("0").ok());
}

}  // namespace
}  // namespace quire::testing
