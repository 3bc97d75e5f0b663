#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <cstdint>
#include <limits>
#include <utility>

#include "engine/base/status.h"
#include "tests/engine/scheduler/scheduler_fixture.h"

namespace quire {
namespace {

using Catch::Matchers::ContainsSubstring;
using testing::MakeRequest;
using testing::SchedulerFixture;

SchedulerConfig Config(int64_t max_model_len) {
  return {.max_num_batched_tokens = 64, .max_num_seqs = 2, .max_model_len = max_model_len, .max_num_logits_rows = 64};
}

// The cache's own answer, token by token: the last token of output is never stored.
bool CompletesAlone(int64_t num_blocks, int64_t block_size, int64_t num_prompt_tokens, int64_t max_tokens) {
  const testing::FakeClock clock;
  KvCacheManager cache({.num_blocks = num_blocks, .block_size = block_size}, &clock);
  for (int64_t num_stored = num_prompt_tokens; num_stored < num_prompt_tokens + max_tokens; ++num_stored) {
    if (!cache.AllocateSlots(RequestId{1}, num_stored)) return false;
  }
  return true;
}

TEST_CASE("A request is accepted exactly if it completes alone") {
  constexpr int64_t kNumBlocks = 3;
  int num_accepted = 0;
  int num_refused = 0;
  for (const int64_t block_size : {16, 32}) {
    const int64_t num_slots = kNumBlocks * block_size;
    for (const int64_t max_model_len : {num_slots - 1, num_slots, num_slots + 1, num_slots + 2}) {
      for (int64_t num_prompt_tokens = 1; num_prompt_tokens <= num_slots + 2; num_prompt_tokens += 5) {
        const int64_t most = num_slots + 1 - num_prompt_tokens;
        for (int64_t max_tokens = std::max<int64_t>(1, most - 3); max_tokens <= std::max<int64_t>(1, most + 3);
             ++max_tokens) {
          INFO("block_size " << block_size << ", max_model_len " << max_model_len << ", prompt " << num_prompt_tokens
                             << ", max_tokens " << max_tokens);
          const bool expected = num_prompt_tokens + max_tokens <= max_model_len &&
                                CompletesAlone(kNumBlocks, block_size, num_prompt_tokens, max_tokens);
          SchedulerFixture fixture(Config(max_model_len), kNumBlocks, block_size);
          const absl::Status status = fixture.scheduler.AddRequest(
              MakeRequest(1, {.num_prompt_tokens = num_prompt_tokens, .max_tokens = max_tokens}));
          REQUIRE(status.ok() == expected);
          if (expected) {
            ++num_accepted;
            fixture.RunToEnd();
            REQUIRE(fixture.finished[RequestId{1}]->num_output_tokens() == max_tokens);
            REQUIRE(fixture.scheduler.num_preemptions() == 0);
          } else {
            ++num_refused;
            REQUIRE_FALSE(fixture.scheduler.HasWork());
            REQUIRE(fixture.Plan().empty());
          }
        }
      }
    }
  }
  CHECK(num_accepted > 100);
  CHECK(num_refused > 100);
}

TEST_CASE("A refusal holds the needed and the available sizes") {
  SchedulerFixture fixture(Config(100), 4, 16);
  const auto add = [&](int64_t num_prompt_tokens, int64_t max_tokens) {
    return fixture.scheduler.AddRequest(
        MakeRequest(1, {.num_prompt_tokens = num_prompt_tokens, .max_tokens = max_tokens}));
  };
  SECTION("too many tokens for the model") {
    const absl::Status status = add(40, 61);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(FieldOf(status) == "sampling.max_tokens");
    CHECK_THAT(
        std::string(status.message()),
        ContainsSubstring("40 prompt tokens and 61 output tokens, 100 tokens in 7 KV blocks, are needed; available "
                          "are 100 tokens (max_model_len) and 4 KV blocks; at most 25 output tokens would fit"));
  }
  SECTION("too many blocks for the pool") {
    const absl::Status status = add(40, 26);
    CHECK(FieldOf(status) == "sampling.max_tokens");
    CHECK_THAT(std::string(status.message()), ContainsSubstring("65 tokens in 5 KV blocks, are needed"));
    CHECK(add(40, 25).ok());
  }
  SECTION("a prompt as long as the model's limit leaves no output") {
    const absl::Status status = add(100, 1);
    CHECK(FieldOf(status) == "prompt");
    CHECK_THAT(std::string(status.message()),
               ContainsSubstring("the prompt's 100 tokens in 7 KV blocks and 1 output token are needed"));
  }
  SECTION("a prompt alone too long for the pool") {
    CHECK(FieldOf(add(65, 1)) == "prompt");
    CHECK(add(64, 1).ok());
  }
  SECTION("the greatest number there is") {
    const absl::Status status = add(40, std::numeric_limits<int64_t>::max());
    CHECK(FieldOf(status) == "sampling.max_tokens");
    CHECK_THAT(std::string(status.message()), ContainsSubstring("9223372036854775807 output tokens are needed"));
  }
  SECTION("nothing to do") {
    CHECK(FieldOf(add(0, 4)) == "prompt");
    CHECK(FieldOf(add(4, 0)) == "sampling.max_tokens");
  }
  fixture.RequireNoViolation();
}

}  // namespace
}  // namespace quire
