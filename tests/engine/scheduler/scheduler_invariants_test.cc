#include "engine/scheduler/scheduler_invariants.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include "tests/engine/scheduler/scheduler_fixture.h"

namespace quire {
namespace {

using testing::SchedulerFixture;

// Request 1 runs with 4 computed tokens and one sampled; request 2 waits.
SchedulerSnapshot SoundSnapshot() {
  SchedulerFixture fixture(
      {.max_num_batched_tokens = 4, .max_num_seqs = 1, .max_model_len = 16, .max_num_logits_rows = 4}, 4, 4);
  fixture.Add({.num_prompt_tokens = 4, .max_tokens = 8});
  fixture.Add({.num_prompt_tokens = 4, .max_tokens = 8});
  fixture.Step();
  return fixture.scheduler.Snapshot();
}

void CheckViolation(const SchedulerSnapshot& snapshot, const std::string& expected) {
  std::string all;
  for (const std::string& violation : FindSchedulerViolations(snapshot)) all += violation + "\n";
  CHECK_THAT(all, Catch::Matchers::ContainsSubstring(expected));
}

TEST_CASE("A sound snapshot has no violation") {
  CHECK(FindSchedulerViolations(SoundSnapshot()) == std::vector<std::string>{});
}

TEST_CASE("Each violation is told") {
  SchedulerSnapshot snapshot = SoundSnapshot();
  SECTION("a request in both queues") {
    snapshot.waiting.push_back(snapshot.running[0]);
    CheckViolation(snapshot, "request 1: stands in the queues 2 times, expected once");
    CheckViolation(snapshot, "request 1: waits and has a block table");
    CheckViolation(snapshot, "request 1: waits with status running");
    CheckViolation(snapshot, "request 1: waits with 4 computed tokens");
  }
  SECTION("a request in no queue") {
    snapshot.waiting.clear();
    CheckViolation(snapshot, "request 2: stands in the queues 0 times, expected once");
  }
  SECTION("a request that nobody owns") {
    snapshot.owned = {RequestId{1}};
    CheckViolation(snapshot, "request 2: stands in a queue, but is not owned");
  }
  SECTION("too many running") {
    snapshot.config.max_num_seqs = 0;
    CheckViolation(snapshot, "running requests: got 1, expected at most 0");
  }
  SECTION("a running request with another status") {
    snapshot.running[0].status = RequestStatus::kPreempted;
    CheckViolation(snapshot, "request 1: runs with status preempted");
  }
  SECTION("all tokens computed, so that nothing can follow") {
    snapshot.running[0].num_computed_tokens = 5;
    CheckViolation(snapshot, "request 1: 5 tokens are computed of 5");
    CheckViolation(snapshot, "request 1: 5 tokens are computed, but it owns slots for 4");
  }
  SECTION("fewer tokens than the prompt") {
    snapshot.running[0].num_prompt_tokens = 6;
    CheckViolation(snapshot, "request 1: prompt of 6 tokens among 5");
  }
  SECTION("more output than asked") {
    snapshot.running[0].max_tokens = 0;
    CheckViolation(snapshot, "request 1: 5 tokens, expected at most 4 of prompt and 0 of output");
  }
  SECTION("more prompt log-probabilities than there are") {
    snapshot.running[0].num_prompt_logprobs_sent = 4;
    CheckViolation(snapshot, "request 1: 4 prompt log-probabilities are sent for 4 prompt tokens");
  }
  SECTION("a table that nobody reads") {
    snapshot.owned = {RequestId{2}};
    snapshot.running.clear();
    CheckViolation(snapshot, "request 1: has a block table for 4 tokens and does not run");
  }
  SECTION("the cache's own") {
    ++snapshot.cache.ref_counts[0];
    CheckViolation(snapshot, "block 0: reference count");
  }
}

}  // namespace
}  // namespace quire
