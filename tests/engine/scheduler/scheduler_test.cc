#include "engine/scheduler/scheduler.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <utility>
#include <vector>

#include "tests/engine/scheduler/scheduler_fixture.h"

namespace quire {
namespace {

using testing::ExpectedTokens;
using testing::MakeRequest;
using testing::SchedulerFixture;

using Planned = std::vector<std::pair<RequestId, int64_t>>;

constexpr int64_t kBlockSize = 4;

SchedulerConfig Config(int64_t max_num_batched_tokens, int64_t max_num_seqs) {
  return {.max_num_batched_tokens = max_num_batched_tokens,
          .max_num_seqs = max_num_seqs,
          .max_model_len = 256,
          .max_num_logits_rows = 64};
}

TEST_CASE("Nothing to do is an empty plan") {
  SchedulerFixture fixture(Config(16, 4), 8, kBlockSize);
  CHECK(fixture.Plan().empty());
  CHECK_FALSE(fixture.scheduler.HasWork());
}

TEST_CASE("A prompt is computed, then a token a step") {
  SchedulerFixture fixture(Config(16, 4), 8, kBlockSize);
  const RequestId id = fixture.Add({.num_prompt_tokens = 5, .max_tokens = 3});
  fixture.Plan();
  REQUIRE(fixture.plan.requests.size() == 1);
  const ScheduledRequest& prefill = fixture.plan.requests[0];
  CHECK(prefill.num_scheduled_tokens() == 5);
  CHECK(prefill.first_position == 0);
  CHECK(prefill.first_logits_row == 4);
  CHECK(prefill.end_logits_row == 5);
  CHECK(prefill.samples_token);
  CHECK(prefill.block_table.size() == 2);
  fixture.CommitStep();

  fixture.Plan();
  const ScheduledRequest& decode = fixture.plan.requests[0];
  CHECK(decode.num_scheduled_tokens() == 1);
  CHECK(decode.first_position == 5);
  CHECK(decode.first_logits_row == 0);
  CHECK(decode.end_logits_row == 1);
  CHECK(decode.samples_token);
  fixture.CommitStep();
  fixture.RunToEnd();
  CHECK(fixture.finished[id]->num_output_tokens() == 3);
  CHECK(fixture.cache.Usage().num_used_blocks == 0);
}

TEST_CASE("A long prompt is computed in chunks, decodes before it and newer prompts after it") {
  SchedulerFixture fixture(Config(8, 4), 32, kBlockSize);
  const RequestId decode = fixture.Add({.num_prompt_tokens = 2, .max_tokens = 10});
  const RequestId prefill = fixture.Add({.num_prompt_tokens = 15, .max_tokens = 2});
  const RequestId newest = fixture.Add({.num_prompt_tokens = 5, .max_tokens = 2});
  fixture.Step();
  CHECK(fixture.PlannedTokens() == Planned{{decode, 2}, {prefill, 6}});
  CHECK_FALSE(fixture.plan.requests[1].samples_token);
  CHECK(fixture.plan.requests[1].num_logits_rows() == 0);
  fixture.Step();
  CHECK(fixture.PlannedTokens() == Planned{{decode, 1}, {prefill, 7}});
  CHECK(fixture.plan.requests[1].first_position == 6);
  fixture.Step();
  CHECK(fixture.PlannedTokens() == Planned{{decode, 1}, {prefill, 2}, {newest, 5}});
  CHECK(fixture.plan.num_logits_rows == 3);
}

TEST_CASE("A request is admitted when a sequence and blocks for its whole prompt are free, and none overtakes it") {
  SECTION("sequences") {
    SchedulerFixture fixture(Config(64, 2), 32, kBlockSize);
    for (int i = 0; i < 3; ++i) fixture.Add({.num_prompt_tokens = 4, .max_tokens = 2});
    fixture.Step();
    CHECK(fixture.scheduler.num_running() == 2);
    CHECK(fixture.scheduler.num_waiting() == 1);
    fixture.Step();
    fixture.Step();
    CHECK(fixture.PlannedTokens() == Planned{{RequestId{3}, 4}});
  }
  SECTION("blocks") {
    SchedulerFixture fixture(Config(8, 4), 6, kBlockSize);
    const RequestId first = fixture.Add({.num_prompt_tokens = 16, .max_tokens = 1});
    const RequestId second = fixture.Add({.num_prompt_tokens = 12, .max_tokens = 1});
    const RequestId third = fixture.Add({.num_prompt_tokens = 4, .max_tokens = 1});
    fixture.Step();
    CHECK(fixture.PlannedTokens() == Planned{{first, 8}});
    CHECK(fixture.cache.BlockTable(first).size() == 4);
    fixture.Step();
    fixture.Step();
    CHECK(fixture.PlannedTokens() == Planned{{second, 8}});
    fixture.Step();
    CHECK(fixture.PlannedTokens() == Planned{{second, 4}, {third, 4}});
  }
}

TEST_CASE("More sequences than batched tokens never starve: none is admitted without a token") {
  SchedulerFixture fixture(Config(3, 8), 64, kBlockSize);
  for (int i = 0; i < 8; ++i) fixture.Add({.num_prompt_tokens = 5, .max_tokens = 6});
  while (fixture.scheduler.HasWork()) {
    fixture.Step();
    REQUIRE(static_cast<int64_t>(fixture.plan.requests.size()) <= 3);
    REQUIRE(fixture.scheduler.num_running() <= 3);
  }
  CHECK(fixture.finished.size() == 8);
}

TEST_CASE("Out of blocks preempts the newest to the front of waiting, and it is not in the step's plan") {
  SchedulerFixture fixture(Config(16, 3), 4, kBlockSize);
  const RequestId oldest = fixture.Add({.num_prompt_tokens = 4, .max_tokens = 8});
  const RequestId middle = fixture.Add({.num_prompt_tokens = 4, .max_tokens = 8});
  const RequestId newest = fixture.Add({.num_prompt_tokens = 6, .max_tokens = 8});
  const RequestId last = fixture.Add({.num_prompt_tokens = 1, .max_tokens = 1});
  fixture.Step();
  REQUIRE(fixture.cache.num_available_blocks() == 0);

  fixture.Plan();
  CHECK(fixture.PlannedTokens() == Planned{{oldest, 1}, {middle, 1}});
  const Request* preempted = fixture.scheduler.Find(newest);
  CHECK(preempted->status == RequestStatus::kPreempted);
  CHECK(preempted->num_computed_tokens == 0);
  CHECK(preempted->num_tokens() == 7);
  CHECK(preempted->num_preemptions == 1);
  CHECK(fixture.scheduler.num_preemptions() == 1);
  CHECK(fixture.cache.BlockTable(newest).empty());
  CHECK(fixture.scheduler.Requests()[2]->id == newest);
  CHECK(fixture.scheduler.Requests()[3]->id == last);
  fixture.CommitStep();

  fixture.RunToEnd();
  REQUIRE(fixture.finished.size() == 4);
  for (const auto& [id, request] : fixture.finished) {
    const auto prompt_end = request->token_ids.begin() + request->num_prompt_tokens;
    CHECK(request->token_ids == ExpectedTokens({request->token_ids.begin(), prompt_end}, request->max_tokens));
  }
}

TEST_CASE("A preempted request recomputes prompt and output and samples from its last row alone") {
  SchedulerFixture fixture(Config(16, 2), 4, kBlockSize);
  fixture.Add({.num_prompt_tokens = 4, .max_tokens = 12});
  const RequestId newest = fixture.Add({.num_prompt_tokens = 6, .max_tokens = 8});
  fixture.StepUntil([&] { return fixture.scheduler.num_preemptions() > 0; });
  const int64_t num_tokens = fixture.scheduler.Find(newest)->num_tokens();
  CHECK(num_tokens > 6);
  fixture.StepUntil([&] { return fixture.scheduler.Find(newest)->status == RequestStatus::kRunning; });
  const ScheduledRequest& recompute = fixture.plan.requests.back();
  CHECK(recompute.request_id == newest);
  CHECK(recompute.first_position == 0);
  CHECK(recompute.num_scheduled_tokens() == num_tokens);
  CHECK(recompute.first_logits_row == num_tokens - 1);
  CHECK(recompute.samples_token);
}

TEST_CASE("The newest gives way by waiting in its place, with its blocks, when only it needs more") {
  SchedulerFixture fixture(Config(16, 2), 3, kBlockSize);
  const RequestId oldest = fixture.Add({.num_prompt_tokens = 5, .max_tokens = 3});
  const RequestId newest = fixture.Add({.num_prompt_tokens = 4, .max_tokens = 4});
  fixture.Step();
  fixture.Step();
  CHECK(fixture.PlannedTokens() == Planned{{oldest, 1}});
  CHECK(fixture.scheduler.Find(newest)->num_computed_tokens == 4);
  fixture.RunToEnd();
  CHECK(fixture.scheduler.num_preemptions() == 0);
  CHECK(fixture.finished.size() == 2);
}

TEST_CASE("A step that failed is planned again as it was") {
  SchedulerFixture fixture(Config(16, 2), 8, kBlockSize);
  const RequestId first = fixture.Add({.num_prompt_tokens = 5, .max_tokens = 3});
  fixture.Step();
  const RequestId second = fixture.Add({.num_prompt_tokens = 6, .max_tokens = 3});
  fixture.Plan();
  const Planned planned = fixture.PlannedTokens();
  const int64_t num_used_blocks = fixture.cache.Usage().num_used_blocks;
  fixture.Plan();
  CHECK(planned == Planned{{first, 1}, {second, 6}});
  CHECK(fixture.PlannedTokens() == planned);
  CHECK(fixture.cache.Usage().num_used_blocks == num_used_blocks);
  fixture.RunToEnd();
  for (const auto& [id, request] : fixture.finished) {
    const auto prompt_end = request->token_ids.begin() + request->num_prompt_tokens;
    CHECK(request->token_ids == ExpectedTokens({request->token_ids.begin(), prompt_end}, request->max_tokens));
  }
}

TEST_CASE("A request removed between plan and commit is passed over") {
  SchedulerFixture fixture(Config(16, 4), 8, kBlockSize);
  const RequestId first = fixture.Add({.num_prompt_tokens = 3, .max_tokens = 5});
  const RequestId second = fixture.Add({.num_prompt_tokens = 3, .max_tokens = 5});
  fixture.scheduler.Schedule(&fixture.plan);
  CHECK(fixture.scheduler.Remove(first) != nullptr);
  fixture.scheduler.Update(fixture.plan, std::vector<TokenId>{7, 8});
  fixture.RequireNoViolation();
  CHECK(fixture.scheduler.Find(second)->token_ids.back() == 8);
}

TEST_CASE("Removing a request in any state frees its blocks") {
  SchedulerFixture fixture(Config(4, 3), 6, kBlockSize);
  const RequestId oldest = fixture.Add({.num_prompt_tokens = 4, .max_tokens = 14});
  CHECK(fixture.Remove(RequestId{99}) == nullptr);

  SECTION("waiting") {
    CHECK(fixture.Remove(oldest)->status == RequestStatus::kWaiting);
    CHECK(fixture.Plan().empty());
  }
  SECTION("decoding") {
    fixture.Step();
    CHECK(fixture.cache.Usage().num_used_blocks == 1);
    CHECK(fixture.Remove(oldest)->num_output_tokens() == 1);
  }
  SECTION("between two chunks") {
    const RequestId prefill = fixture.Add({.num_prompt_tokens = 10, .max_tokens = 1});
    fixture.Step();
    fixture.Step();
    CHECK(fixture.scheduler.Find(prefill)->num_computed_tokens == 3);
    CHECK(fixture.Remove(prefill)->status == RequestStatus::kRunning);
    CHECK(fixture.cache.BlockTable(prefill).empty());
    CHECK(fixture.Remove(oldest) != nullptr);
  }
  SECTION("preempted") {
    const RequestId newest = fixture.Add({.num_prompt_tokens = 10, .max_tokens = 8});
    fixture.StepUntil([&] { return fixture.scheduler.num_preemptions() > 0; });
    CHECK(fixture.Remove(newest)->status == RequestStatus::kPreempted);
    CHECK(fixture.Remove(oldest) != nullptr);
  }
  CHECK_FALSE(fixture.scheduler.HasWork());
  CHECK(fixture.cache.Usage().num_used_blocks == 0);
}

TEST_CASE("A scheduler's end gives all blocks back") {
  const testing::FakeClock clock;
  KvCacheManager cache({.num_blocks = 4, .block_size = kBlockSize}, &clock);
  {
    Scheduler scheduler(Config(16, 4), &cache, &clock);
    REQUIRE(scheduler.AddRequest(MakeRequest(1, {.num_prompt_tokens = 9, .max_tokens = 2})).ok());
    StepPlan plan;
    scheduler.Schedule(&plan);
    CHECK(cache.Usage().num_used_blocks == 3);
  }
  CHECK(cache.Usage().num_used_blocks == 0);
}

TEST_CASE("Deadlines at or before now are collected, in every state") {
  using std::chrono::seconds;
  SchedulerFixture fixture(Config(16, 1), 8, kBlockSize);
  const TimePoint start = fixture.clock.Now();
  const auto add = [&](std::optional<TimePoint> deadline) {
    return fixture.Add({.num_prompt_tokens = 3, .max_tokens = 5, .deadline = deadline});
  };
  const RequestId running = add(start + seconds(2));
  const RequestId waiting = add(start + seconds(1));
  add(start + seconds(3));
  add(std::nullopt);
  fixture.Step();

  const auto expired_at = [&](TimePoint now) {
    std::vector<RequestId> expired;
    fixture.scheduler.CollectExpired(now, &expired);
    std::sort(expired.begin(), expired.end());
    return expired;
  };
  CHECK(expired_at(start).empty());
  CHECK(expired_at(start + seconds(2) - Duration(1)) == std::vector{waiting});
  CHECK(expired_at(start + seconds(2)) == std::vector{running, waiting});
}

TEST_CASE("Times of the first schedule and the first token are kept, also over preemption") {
  using std::chrono::seconds;
  SchedulerFixture fixture(Config(4, 2), 4, kBlockSize);
  const TimePoint start = fixture.clock.Now();
  const RequestId oldest = fixture.Add({.num_prompt_tokens = 4, .max_tokens = 9});
  const RequestId newest = fixture.Add({.num_prompt_tokens = 6, .max_tokens = 4});
  for (int i = 1; fixture.scheduler.HasWork(); ++i) {
    fixture.clock.Set(start + seconds(10 * i));
    fixture.Plan();
    fixture.clock.Advance(seconds(1));
    fixture.CommitStep();
  }
  CHECK(fixture.scheduler.num_preemptions() > 0);
  CHECK(fixture.finished[oldest]->first_scheduled_time == start + seconds(10));
  CHECK(fixture.finished[oldest]->first_token_time == start + seconds(11));
  CHECK(fixture.finished[newest]->first_scheduled_time == start + seconds(20));
  CHECK(fixture.finished[newest]->first_token_time == start + seconds(31));
}

TEST_CASE("A steady step moves neither the plan nor a request's tokens") {
  SchedulerFixture fixture(Config(16, 4), 64, kBlockSize);
  std::vector<RequestId> ids;
  for (int i = 0; i < 4; ++i) ids.push_back(fixture.Add({.num_prompt_tokens = 3, .max_tokens = 40}));
  fixture.Step();
  const auto* plan_data = fixture.plan.requests.data();
  const TokenId* tokens = fixture.scheduler.Find(ids[0])->token_ids.data();
  const BlockId* table = fixture.cache.BlockTable(ids[0]).data();
  for (int i = 0; i < 30; ++i) fixture.Step();
  CHECK(fixture.plan.requests.data() == plan_data);
  CHECK(fixture.scheduler.Find(ids[0])->token_ids.data() == tokens);
  CHECK(fixture.cache.BlockTable(ids[0]).data() == table);
}

}  // namespace
}  // namespace quire
