#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <random>
#include <vector>

#include "tests/engine/scheduler/scheduler_fixture.h"

namespace quire {
namespace {

using testing::ExpectedTokens;
using testing::MakeRequest;
using testing::SchedulerFixture;

// Adds, removes, fails and runs at random; whatever completes must have the output it has alone.
class RandomRun {
 public:
  RandomRun(const SchedulerConfig& config, int64_t num_blocks, int64_t block_size, uint32_t seed)
      : fixture_(config, num_blocks, block_size), random_(seed) {}

  void Run(int num_operations) {
    for (int i = 0; i < num_operations; ++i) {
      switch (Below(10)) {
        case 0:
        case 1: Add(); break;
        case 2: RemoveAny(); break;
        case 3: fixture_.Plan(); break;  // a step that fails: nothing is committed
        default: fixture_.Step();
      }
      CheckFinished();
    }
    fixture_.RunToEnd();
    CheckFinished();
    CHECK(fixture_.cache.Usage().num_used_blocks == 0);
  }

  int64_t num_completed() const { return num_completed_; }
  int64_t num_completed_after_preemption() const { return num_completed_after_preemption_; }

 private:
  int64_t Below(int64_t bound) { return std::uniform_int_distribution<int64_t>(0, bound - 1)(random_); }

  void Add() {
    if (fixture_.scheduler.num_waiting() > 12) return;
    const RequestId id{next_id_++};
    auto request = MakeRequest(
        static_cast<uint64_t>(id),
        {.num_prompt_tokens = 1 + Below(40), .max_tokens = 1 + Below(30), .wants_prompt_logprobs = Below(3) == 0});
    const int64_t max_stored_tokens = request->max_stored_tokens();
    const bool fits = max_stored_tokens < fixture_.config.max_model_len &&
                      fixture_.cache.BlocksFor(max_stored_tokens) <= fixture_.cache.num_blocks();
    REQUIRE(fixture_.scheduler.AddRequest(std::move(request)).ok() == fits);
    fixture_.RequireNoViolation();
  }

  void RemoveAny() {
    const auto requests = fixture_.scheduler.Requests();
    if (requests.empty()) return;
    const RequestId id = requests[static_cast<size_t>(Below(static_cast<int64_t>(requests.size())))]->id;
    REQUIRE(fixture_.Remove(id) != nullptr);
    REQUIRE(fixture_.cache.BlockTable(id).empty());
    fixture_.prompt_rows.erase(id);
  }

  void CheckFinished() {
    for (const auto& [id, request] : fixture_.finished) {
      const auto prompt_end = request->token_ids.begin() + request->num_prompt_tokens;
      REQUIRE(request->token_ids == ExpectedTokens({request->token_ids.begin(), prompt_end}, request->max_tokens));
      CheckPromptRows(*request);
      ++num_completed_;
      if (request->num_preemptions > 0) ++num_completed_after_preemption_;
    }
    fixture_.finished.clear();
  }

  void CheckPromptRows(const Request& request) {
    const int64_t num_expected = request.wants_prompt_logprobs() ? request.num_prompt_tokens - 1 : 0;
    std::vector<int64_t> expected(static_cast<size_t>(num_expected));
    std::iota(expected.begin(), expected.end(), 0);
    REQUIRE(fixture_.prompt_rows[request.id] == expected);
    fixture_.prompt_rows.erase(request.id);
  }

  SchedulerFixture fixture_;
  std::mt19937 random_;
  uint64_t next_id_ = 1;
  int64_t num_completed_ = 0;
  int64_t num_completed_after_preemption_ = 0;
};

TEST_CASE("Whatever is added, removed and preempted, each output is what it is alone") {
  int64_t num_completed = 0;
  int64_t num_completed_after_preemption = 0;
  uint32_t seed = 5;
  for (const int64_t max_num_batched_tokens : {1, 7, 16, 64}) {
    for (const int64_t num_logits_rows : {6, 40}) {
      for (const int64_t block_size : {1, 4, 16}) {
        const SchedulerConfig config{.max_num_batched_tokens = max_num_batched_tokens,
                                     .max_num_seqs = 6,
                                     .max_model_len = 64,
                                     .max_num_logits_rows = num_logits_rows};
        RandomRun run(config, /*num_blocks=*/80 / block_size, block_size, seed++);
        run.Run(1500);
        num_completed += run.num_completed();
        num_completed_after_preemption += run.num_completed_after_preemption();
      }
    }
  }
  INFO(num_completed << " completed, " << num_completed_after_preemption << " after preemption");
  CHECK(num_completed > 500);
  CHECK(num_completed_after_preemption > 50);
}

}  // namespace
}  // namespace quire
