#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <vector>

#include "tests/engine/scheduler/scheduler_fixture.h"

namespace quire {
namespace {

using testing::SchedulerFixture;

// Positions whose rows predict prompt tokens [1, num_prompt_tokens).
std::vector<int64_t> AllPromptRows(int64_t num_prompt_tokens) {
  std::vector<int64_t> positions(static_cast<size_t>(num_prompt_tokens - 1));
  std::iota(positions.begin(), positions.end(), 0);
  return positions;
}

TEST_CASE("All rows of a prompt are wanted, the last to sample") {
  SchedulerFixture fixture(
      {.max_num_batched_tokens = 64, .max_num_seqs = 4, .max_model_len = 64, .max_num_logits_rows = 64}, 16, 4);
  const RequestId id = fixture.Add({.num_prompt_tokens = 10, .max_tokens = 3, .wants_prompt_logprobs = true});
  fixture.Step();
  CHECK(fixture.plan.num_logits_rows == 10);
  CHECK(fixture.scheduler.Find(id)->num_prompt_logprobs_sent == 9);
  fixture.Step();
  CHECK(fixture.plan.num_logits_rows == 1);
  fixture.RunToEnd();
  CHECK(fixture.prompt_rows[id] == AllPromptRows(10));
}

TEST_CASE("A prompt of one token has no log-probability") {
  SchedulerFixture fixture(
      {.max_num_batched_tokens = 64, .max_num_seqs = 4, .max_model_len = 64, .max_num_logits_rows = 64}, 16, 4);
  const RequestId id = fixture.Add({.num_prompt_tokens = 1, .max_tokens = 2, .wants_prompt_logprobs = true});
  fixture.RunToEnd();
  CHECK(fixture.prompt_rows[id].empty());
}

TEST_CASE("A chunk is shortened to the rows of a step") {
  SchedulerFixture fixture(
      {.max_num_batched_tokens = 64, .max_num_seqs = 4, .max_model_len = 64, .max_num_logits_rows = 4}, 32, 4);
  const RequestId plain = fixture.Add({.num_prompt_tokens = 3, .max_tokens = 20});
  const RequestId id = fixture.Add({.num_prompt_tokens = 10, .max_tokens = 3, .wants_prompt_logprobs = true});
  fixture.Step();
  CHECK(fixture.PlannedTokens() == std::vector<std::pair<RequestId, int64_t>>{{plain, 3}, {id, 3}});
  CHECK(fixture.plan.num_logits_rows == 4);
  CHECK_FALSE(fixture.plan.requests[1].samples_token);
  fixture.RunToEnd();
  CHECK(fixture.prompt_rows[id] == AllPromptRows(10));
}

TEST_CASE("A request whose first chunk has no row left is not admitted") {
  SchedulerFixture fixture(
      {.max_num_batched_tokens = 64, .max_num_seqs = 4, .max_model_len = 64, .max_num_logits_rows = 4}, 32, 4);
  fixture.Add({.num_prompt_tokens = 10, .max_tokens = 3, .wants_prompt_logprobs = true});
  fixture.Add({.num_prompt_tokens = 10, .max_tokens = 3, .wants_prompt_logprobs = true});
  fixture.Step();
  CHECK(fixture.scheduler.num_running() == 1);
  fixture.RunToEnd();
  CHECK(fixture.prompt_rows[RequestId{1}] == AllPromptRows(10));
  CHECK(fixture.prompt_rows[RequestId{2}] == AllPromptRows(10));
}

TEST_CASE("Recomputing sends no prompt log-probability twice, wherever the preemption came") {
  for (int64_t num_prompt_tokens = 2; num_prompt_tokens <= 30; ++num_prompt_tokens) {
    for (int64_t num_rows = 2; num_rows <= 8; num_rows += 3) {
      SchedulerFixture fixture(
          {.max_num_batched_tokens = 16, .max_num_seqs = 2, .max_model_len = 64, .max_num_logits_rows = num_rows}, 9,
          4);
      fixture.Add({.num_prompt_tokens = 3, .max_tokens = 30});
      const RequestId id =
          fixture.Add({.num_prompt_tokens = num_prompt_tokens, .max_tokens = 6, .wants_prompt_logprobs = true});
      fixture.RunToEnd();
      INFO("prompt " << num_prompt_tokens << ", rows " << num_rows);
      REQUIRE(fixture.prompt_rows[id] == AllPromptRows(num_prompt_tokens));
    }
  }
}

TEST_CASE("A request preempted amid its prompt log-probabilities goes on after those sent") {
  SchedulerFixture fixture(
      {.max_num_batched_tokens = 16, .max_num_seqs = 2, .max_model_len = 64, .max_num_logits_rows = 2}, 8, 4);
  fixture.Add({.num_prompt_tokens = 3, .max_tokens = 24});
  const RequestId id = fixture.Add({.num_prompt_tokens = 26, .max_tokens = 2, .wants_prompt_logprobs = true});
  fixture.StepUntil([&] { return fixture.scheduler.num_preemptions() > 0; });
  const Request* request = fixture.scheduler.Find(id);
  const int64_t num_sent = request->num_prompt_logprobs_sent;
  CHECK(num_sent > 0);
  CHECK(num_sent < 25);
  fixture.StepUntil([&] { return request->status == RequestStatus::kRunning; });
  const ScheduledRequest& recompute = fixture.plan.requests.back();
  CHECK(recompute.request_id == id);
  CHECK(recompute.first_position == 0);
  CHECK(recompute.first_logits_row >= std::min(num_sent, recompute.num_scheduled_tokens()));
  fixture.RunToEnd();
  CHECK(fixture.prompt_rows[id] == AllPromptRows(26));
}

}  // namespace
}  // namespace quire
