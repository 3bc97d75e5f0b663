// What tenants and priorities mean for who is served, over whole runs of the scheduler.
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

#include "tests/engine/scheduler/scheduler_fixture.h"

namespace quire {
namespace {

using std::chrono::seconds;
using testing::RequestOptions;
using testing::SchedulerFixture;

SchedulerConfig Config(TenantLimitsByName tenants = {}) {
  return {.max_num_batched_tokens = 64,
          .max_num_seqs = 4,
          .max_model_len = 256,
          .priority_aging_seconds = 10,
          .tenants = std::move(tenants),
          .max_num_logits_rows = 4};
}

TenantLimits Weight(double weight) { return {.weight = weight, .max_running_requests = {}, .max_kv_blocks = {}}; }

// Output tokens of each tenant after `num_steps`, with all of them always waiting.
std::map<std::string, int64_t> ServedTokens(SchedulerFixture* fixture, int num_steps) {
  std::map<std::string, int64_t> served;
  for (int i = 0; i < num_steps; ++i) {
    for (const ScheduledRequest& scheduled : fixture->Plan().requests) {
      if (scheduled.samples_token) ++served[fixture->scheduler.Find(scheduled.request_id)->tenant];
    }
    fixture->CommitStep();
  }
  return served;
}

// How many requests of each tenant run.
std::map<std::string, int> Running(const SchedulerFixture& fixture) {
  std::map<std::string, int> running;
  for (const Request* request : fixture.scheduler.Requests()) {
    if (request->status == RequestStatus::kRunning) ++running[request->tenant];
  }
  return running;
}

TEST_CASE("A flood does not take another tenant's share") {
  SchedulerFixture fixture(Config(), 256, 16);
  for (int i = 0; i < 400; ++i) fixture.Add({.num_prompt_tokens = 16, .max_tokens = 10, .tenant = "flood"});
  for (int i = 0; i < 100; ++i) fixture.Add({.num_prompt_tokens = 16, .max_tokens = 10, .tenant = "small"});
  auto served = ServedTokens(&fixture, 200);
  CHECK(served["small"] * 10 >= served["flood"] * 9);
  CHECK(served["flood"] * 10 >= served["small"] * 9);
}

TEST_CASE("A newcomer is next, however long the other's queue is") {
  SchedulerFixture fixture(Config(), 256, 16);
  for (int i = 0; i < 100; ++i) fixture.Add({.num_prompt_tokens = 16, .max_tokens = 10, .tenant = "flood"});
  for (int i = 0; i < 20; ++i) fixture.Step();
  const RequestId small = fixture.Add({.num_prompt_tokens = 16, .max_tokens = 1, .tenant = "small"});
  int num_steps = 0;
  while (!fixture.finished.contains(small)) {
    fixture.Step();
    ++num_steps;
  }
  CHECK(num_steps <= 11);  // until the next of four running requests ends
}

TEST_CASE("Shares follow weights") {
  SchedulerFixture fixture(Config({{"double", Weight(2)}}), 256, 16);
  for (int i = 0; i < 300; ++i) {
    fixture.Add({.num_prompt_tokens = 16, .max_tokens = 10, .tenant = "double"});
    fixture.Add({.num_prompt_tokens = 16, .max_tokens = 10, .tenant = "single"});
  }
  auto served = ServedTokens(&fixture, 300);
  CHECK(served["double"] * 10 >= served["single"] * 18);
  CHECK(served["double"] * 10 <= served["single"] * 22);
}

TEST_CASE("A tenant's limits hold at every step, and others go on") {
  SchedulerFixture fixture(Config({{"capped", {.weight = 1, .max_running_requests = 1, .max_kv_blocks = {}}},
                                   {"little", {.weight = 1, .max_running_requests = {}, .max_kv_blocks = 4}}}),
                           256, 16);
  for (int i = 0; i < 20; ++i) {
    fixture.Add({.num_prompt_tokens = 16, .max_tokens = 10, .tenant = "capped"});  // 2 blocks at its end
    fixture.Add({.num_prompt_tokens = 16, .max_tokens = 10, .tenant = "little"});
    fixture.Add({.num_prompt_tokens = 16, .max_tokens = 10, .tenant = "free"});
  }
  bool was_full = false;
  while (fixture.scheduler.HasWork()) {
    fixture.Step();
    auto running = Running(fixture);
    REQUIRE(running["capped"] <= 1);
    REQUIRE(running["little"] <= 2);
    was_full = was_full || running["capped"] + running["little"] + running["free"] == 4;
  }
  CHECK(was_full);
  CHECK(fixture.finished.size() == 60);
}

TEST_CASE("Shares follow a weight that is changed while requests wait") {
  SchedulerFixture fixture(Config({{"a", Weight(2)}}), 256, 16);
  for (int i = 0; i < 600; ++i) {
    fixture.Add({.num_prompt_tokens = 16, .max_tokens = 10, .tenant = "a"});
    fixture.Add({.num_prompt_tokens = 16, .max_tokens = 10, .tenant = "b"});
  }
  auto before = ServedTokens(&fixture, 300);
  CHECK(before["a"] * 10 >= before["b"] * 18);
  fixture.scheduler.SetTenantLimits({{"b", Weight(2)}});
  auto after = ServedTokens(&fixture, 300);
  CHECK(after["b"] * 10 >= after["a"] * 18);
  CHECK(after["b"] * 10 <= after["a"] * 22);
}

TEST_CASE("A limit that is lowered lets what runs go on, and holds for what comes after; raised, more run") {
  SchedulerFixture fixture(Config(), 256, 16);
  for (int i = 0; i < 20; ++i) fixture.Add({.num_prompt_tokens = 16, .max_tokens = 10, .tenant = "a"});
  fixture.Step();
  REQUIRE(Running(fixture)["a"] == 4);
  fixture.scheduler.SetTenantLimits({{"a", {.weight = 1, .max_running_requests = 1, .max_kv_blocks = {}}}});
  fixture.Step();
  CHECK(Running(fixture)["a"] == 4);
  fixture.StepUntil([&] { return fixture.finished.size() >= 4; });
  for (int i = 0; i < 20; ++i) {
    fixture.Step();
    REQUIRE(Running(fixture)["a"] <= 1);
  }
  fixture.scheduler.SetTenantLimits({{"a", {.weight = 1, .max_running_requests = 3, .max_kv_blocks = {}}}});
  fixture.Step();
  CHECK(Running(fixture)["a"] == 3);
  fixture.RunToEnd();
  CHECK(fixture.finished.size() == 20);
  CHECK(fixture.scheduler.num_preemptions() == 0);
}

TEST_CASE(
    "Requests larger than a limit that was lowered since they were accepted run alone, and new ones are refused") {
  SchedulerFixture fixture(Config(), 256, 16);
  const RequestOptions large = {.num_prompt_tokens = 60, .max_tokens = 60, .tenant = "a"};  // 8 blocks at its end
  for (int i = 0; i < 3; ++i) fixture.Add(large);
  fixture.Add({.num_prompt_tokens = 16, .max_tokens = 60, .tenant = "b"});
  fixture.scheduler.SetTenantLimits({{"a", {.weight = 1, .max_running_requests = {}, .max_kv_blocks = 4}}});
  CHECK_FALSE(fixture.scheduler.AddRequest(testing::MakeRequest(100, large)).ok());
  while (fixture.scheduler.HasWork()) {
    REQUIRE_FALSE(fixture.Step().empty());
    REQUIRE(Running(fixture)["a"] <= 1);
  }
  CHECK(fixture.finished.size() == 4);
}

TEST_CASE("Urgent requests run first, and age keeps the others from waiting for ever") {
  SchedulerFixture fixture(Config(), 256, 16);
  const RequestId patient = fixture.Add({.num_prompt_tokens = 16, .max_tokens = 4, .priority = 3});
  int num_steps = 0;
  while (!fixture.finished.contains(patient)) {
    // More urgent work than can be served, all the time.
    while (fixture.scheduler.num_waiting() < 10) fixture.Add({.num_prompt_tokens = 16, .max_tokens = 4});
    fixture.Step();
    fixture.clock.Advance(seconds(1));
    ++num_steps;
  }
  CHECK(num_steps > 30);
  CHECK(num_steps < 60);
}

TEST_CASE("Out of blocks the least urgent gives way, though it came first") {
  SchedulerFixture fixture(Config(), 6, 16);
  const RequestId first = fixture.Add({.num_prompt_tokens = 30, .max_tokens = 40, .priority = 1});
  fixture.Step();
  const RequestId urgent = fixture.Add({.num_prompt_tokens = 30, .max_tokens = 40});
  fixture.StepUntil([&] { return fixture.scheduler.num_preemptions() > 0; });
  CHECK(fixture.scheduler.Find(first)->status == RequestStatus::kPreempted);
  CHECK(fixture.scheduler.Find(urgent)->num_preemptions == 0);
  fixture.RunToEnd();
  CHECK(fixture.finished.size() == 2);
}

TEST_CASE("A tenant that has waited long in masses, all of it urgent, takes nothing from a newcomer") {
  SchedulerFixture fixture(Config(), 256, 16);
  for (int i = 0; i < 200; ++i) {
    fixture.Add({.num_prompt_tokens = 16, .max_tokens = 10, .tenant = "flood", .priority = -100});
  }
  for (int i = 0; i < 40; ++i) {
    fixture.clock.Advance(seconds(60));
    fixture.Step();
  }
  const RequestId small = fixture.Add({.num_prompt_tokens = 16, .max_tokens = 1, .tenant = "small"});
  for (int i = 0; i < 11; ++i) fixture.Step();
  CHECK(fixture.finished.contains(small));
}

TEST_CASE("A newcomer takes its place at once from a tenant that has them all") {
  SECTION("sequences") {
    SchedulerFixture fixture(Config(), 256, 16);
    for (int i = 0; i < 8; ++i) fixture.Add({.num_prompt_tokens = 16, .max_tokens = 100, .tenant = "flood"});
    for (int i = 0; i < 5; ++i) fixture.Step();
    const RequestId small = fixture.Add({.num_prompt_tokens = 16, .max_tokens = 1, .tenant = "small"});
    fixture.Step();  // in which the flood is served more than what it was equal to
    fixture.Step();
    CHECK(fixture.finished.contains(small));
    CHECK(fixture.scheduler.num_preemptions() == 1);
    fixture.RunToEnd();
    CHECK(fixture.finished.size() == 9);
  }
  SECTION("blocks") {
    SchedulerFixture fixture(Config(), 12, 16);
    for (int i = 0; i < 3; ++i) fixture.Add({.num_prompt_tokens = 60, .max_tokens = 60, .tenant = "flood"});
    for (int i = 0; i < 3; ++i) fixture.Step();
    REQUIRE(fixture.cache.num_available_blocks() < 3);
    const RequestId small = fixture.Add({.num_prompt_tokens = 40, .max_tokens = 1, .tenant = "small"});
    fixture.Step();
    CHECK(fixture.finished.contains(small));
    CHECK(fixture.scheduler.num_preemptions() > 0);
    fixture.RunToEnd();
    CHECK(fixture.finished.size() == 4);
  }
}

TEST_CASE("Out of blocks the tenant that runs most gives way, not the newcomer") {
  SchedulerFixture fixture(Config(), 12, 16);
  for (int i = 0; i < 3; ++i) fixture.Add({.num_prompt_tokens = 40, .max_tokens = 60, .tenant = "flood"});
  for (int i = 0; i < 3; ++i) fixture.Step();
  const RequestId small = fixture.Add({.num_prompt_tokens = 20, .max_tokens = 60, .tenant = "small"});
  fixture.StepUntil([&] { return fixture.scheduler.num_preemptions() > 0; });
  REQUIRE(fixture.scheduler.Find(small)->status == RequestStatus::kRunning);
  fixture.RunToEnd();
  CHECK(fixture.finished.at(small)->num_preemptions == 0);
}

TEST_CASE("A newcomer's prompt is a step of its own, and the others' decodes wait for one step at most") {
  SchedulerConfig config = Config();
  config.max_num_seqs = 8;
  config.max_num_logits_rows = 8;
  SchedulerFixture fixture(config, 256, 16);
  for (int i = 0; i < 6; ++i) fixture.Add({.num_prompt_tokens = 4, .max_tokens = 200, .tenant = "flood"});
  for (int i = 0; i < 6; ++i) fixture.Step();
  bool flood_waited = false;
  int num_own_steps = 0;
  for (int i = 0; i < 20; ++i) {
    fixture.Add({.num_prompt_tokens = 20, .max_tokens = 1, .tenant = "newcomer " + std::to_string(i)});
    int num_flood_tokens = 0;
    for (const ScheduledRequest& scheduled : fixture.Plan().requests) {
      num_flood_tokens += fixture.scheduler.Find(scheduled.request_id)->tenant == "flood" ? 1 : 0;
    }
    REQUIRE((num_flood_tokens == 0 || num_flood_tokens == 6));
    REQUIRE_FALSE((flood_waited && num_flood_tokens == 0));
    flood_waited = num_flood_tokens == 0;
    num_own_steps += flood_waited ? 1 : 0;
    fixture.CommitStep();
  }
  CHECK(num_own_steps >= 5);
  fixture.RunToEnd();
  CHECK(fixture.finished.size() == 26);
}

TEST_CASE("A step with a newcomer's prompt is not made longer by a tenant that was served more") {
  SchedulerFixture fixture(Config(), 256, 16);
  fixture.Add({.num_prompt_tokens = 200, .max_tokens = 1, .tenant = "flood"});
  fixture.Step();
  fixture.Add({.num_prompt_tokens = 20, .max_tokens = 1, .tenant = "first"});
  fixture.Add({.num_prompt_tokens = 20, .max_tokens = 1, .tenant = "second"});
  fixture.Step();  // in which they take turns with the flood, all having been served alike
  fixture.Add({.num_prompt_tokens = 20, .max_tokens = 1, .tenant = "third"});
  fixture.Add({.num_prompt_tokens = 20, .max_tokens = 1, .tenant = "fourth"});
  CHECK(fixture.Plan().num_prefill_tokens < 64);
  CHECK(fixture.plan.requests.size() >= 2);  // newcomers join each other
  fixture.RunToEnd();
  CHECK(fixture.finished.size() == 5);
}

TEST_CASE("A long prompt of one tenant does not hold up another's short one") {
  SchedulerConfig config = Config();
  config.max_num_batched_tokens = 16;
  SchedulerFixture fixture(config, 256, 16);
  fixture.Add({.num_prompt_tokens = 200, .max_tokens = 1, .tenant = "long"});
  fixture.Step();
  const RequestId brief = fixture.Add({.num_prompt_tokens = 10, .max_tokens = 1, .tenant = "brief"});
  // They take turns: both had been served alike when it came.
  fixture.Step();
  fixture.Step();
  CHECK(fixture.finished.contains(brief));
}

TEST_CASE("Steps beside decodes are as long as measured steps allow") {
  SchedulerConfig config = Config();
  config.target_step_seconds = 0.1;
  config.max_num_batched_tokens = 160;
  SchedulerFixture fixture(config, 256, 16);
  fixture.Add({.num_prompt_tokens = 4, .max_tokens = 100});
  fixture.Step();
  fixture.Add({.num_prompt_tokens = 240, .max_tokens = 1});
  CHECK(fixture.Plan().num_prefill_tokens == 159);  // a decode beside them
  fixture.scheduler.ObserveStep(fixture.plan, 0.2);
  fixture.CommitStep();
  CHECK(fixture.Plan().num_prefill_tokens == 80);
  CHECK(fixture.plan.num_tokens == 81);
}

}  // namespace
}  // namespace quire
