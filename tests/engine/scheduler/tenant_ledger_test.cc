#include "engine/scheduler/tenant_ledger.h"

#include <catch2/catch_test_macros.hpp>

namespace quire {
namespace {

TEST_CASE("Served tokens count by the tenant's weight") {
  TenantLedger ledger({{"heavy", {.weight = 4, .max_running_requests = {}, .max_kv_blocks = {}}}});
  ledger.Arrive("heavy");
  ledger.Arrive("other");
  ledger.Serve("heavy", 100);
  ledger.Serve("other", 100);
  CHECK(ledger.virtual_tokens("heavy") == 25);
  CHECK(ledger.virtual_tokens("other") == 100);
}

TEST_CASE("Idleness saves up no share") {
  TenantLedger ledger({});
  ledger.Arrive("busy");
  ledger.Serve("busy", 1000);
  ledger.Arrive("late");
  CHECK(ledger.virtual_tokens("late") == 1000);
  // One that has had more than the least keeps its debt while it is away.
  ledger.Serve("busy", 500);
  ledger.Arrive("third");
  CHECK(ledger.virtual_tokens("third") == 1000);
  ledger.Leave("busy");
  ledger.Arrive("busy");
  CHECK(ledger.virtual_tokens("busy") == 1500);
}

TEST_CASE("Who is away and owes nothing is forgotten; with nobody there all is") {
  TenantLedger ledger({});
  ledger.Arrive("a");
  ledger.Arrive("b");
  ledger.Serve("b", 10);
  ledger.Leave("a");
  CHECK(ledger.accounts().size() == 2);
  ledger.Arrive("c");  // lifted to b's counter, above a's
  CHECK(ledger.accounts().size() == 2);
  CHECK_FALSE(ledger.accounts().contains("a"));
  ledger.Leave("b");
  ledger.Leave("c");
  CHECK(ledger.accounts().empty());
  ledger.Arrive("b");
  CHECK(ledger.virtual_tokens("b") == 0);
}

TEST_CASE("A tenant may take a place from one that runs more, until it runs half as many by weight") {
  TenantLedger ledger({{"double", {.weight = 2, .max_running_requests = {}, .max_kv_blocks = {}}}});
  for (const char* tenant : {"flood", "small", "double"}) {
    for (int i = 0; i < 10; ++i) ledger.Arrive(tenant);
  }
  CHECK_FALSE(ledger.MayDisplace("small", "flood"));
  for (int i = 0; i < 6; ++i) ledger.Start("flood", 1);
  CHECK(ledger.MayDisplace("small", "flood"));
  ledger.Stop("flood", 1);
  ledger.Start("small", 1);  // 1 beside 5
  CHECK(ledger.MayDisplace("small", "flood"));
  CHECK_FALSE(ledger.MayDisplace("flood", "small"));
  ledger.Stop("flood", 1);
  ledger.Start("small", 1);  // 2 beside 4
  CHECK_FALSE(ledger.MayDisplace("small", "flood"));
  CHECK_FALSE(ledger.MayDisplace("flood", "small"));
  ledger.Start("double", 1);
  CHECK(ledger.MayDisplace("double", "flood"));  // then 2 of weight 2 beside 3
  CHECK_FALSE(ledger.MayDisplace("small", "small"));
}

TEST_CASE("Limits of running requests and of blocks hold one by one, and for all that are not named") {
  TenantLedger ledger({{"few", {.weight = 1, .max_running_requests = 2, .max_kv_blocks = {}}},
                       {"*", {.weight = 1, .max_running_requests = {}, .max_kv_blocks = 10}}});
  for (int i = 0; i < 3; ++i) {
    ledger.Arrive("few");
    ledger.Arrive("other");
  }
  ledger.Start("few", 100);
  CHECK(ledger.MayStart("few", 100));
  ledger.Start("few", 100);
  CHECK_FALSE(ledger.MayStart("few", 1));
  ledger.Stop("few", 100);
  CHECK(ledger.MayStart("few", 1));

  ledger.Start("other", 6);
  CHECK(ledger.MayStart("other", 4));
  CHECK_FALSE(ledger.MayStart("other", 5));
}

TEST_CASE("A tenant with nothing running may start one request, whatever its limits have become") {
  TenantLedger ledger({{"a", {.weight = 1, .max_running_requests = {}, .max_kv_blocks = 10}}});
  ledger.Arrive("a");
  ledger.Arrive("a");
  CHECK(ledger.MayStart("a", 11));
  ledger.Start("a", 11);
  CHECK_FALSE(ledger.MayStart("a", 1));
  ledger.Stop("a", 11);
  CHECK(ledger.MayStart("a", 11));
}

TEST_CASE("New limits hold at once for tenants that are there, and what was served stays counted as it was") {
  TenantLedger ledger({{"a", {.weight = 2, .max_running_requests = 1, .max_kv_blocks = {}}}});
  for (int i = 0; i < 3; ++i) ledger.Arrive("a");
  ledger.Arrive("b");
  ledger.Start("a", 4);
  ledger.Serve("a", 100);
  CHECK_FALSE(ledger.MayStart("a", 4));

  ledger.SetLimits({{"a", {.weight = 4, .max_running_requests = 2, .max_kv_blocks = 8}},
                    {"*", {.weight = 0.5, .max_running_requests = {}, .max_kv_blocks = {}}}});
  CHECK(ledger.virtual_tokens("a") == 50);
  ledger.Serve("a", 100);
  ledger.Serve("b", 100);
  CHECK(ledger.virtual_tokens("a") == 75);
  CHECK(ledger.virtual_tokens("b") == 200);
  CHECK(ledger.MayStart("a", 4));
  CHECK_FALSE(ledger.MayStart("a", 5));
  ledger.Start("a", 4);
  CHECK_FALSE(ledger.MayStart("a", 0));

  ledger.SetLimits({});
  CHECK(ledger.accounts().at("a").limits.weight == 1);
  CHECK(ledger.MayStart("a", 100));
  ledger.Arrive("late");
  CHECK(ledger.accounts().at("late").limits.weight == 1);
}

}  // namespace
}  // namespace quire
