// Prefix hits through the scheduler: what they save, and that they change no token.
#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <vector>

#include "tests/engine/scheduler/scheduler_fixture.h"

namespace quire {
namespace {

using testing::ExpectedTokens;
using testing::RequestOptions;
using testing::SchedulerFixture;

constexpr int64_t kBlockSize = 16;

SchedulerConfig Config() {
  return {.max_num_batched_tokens = 64, .max_num_seqs = 4, .max_model_len = 512, .max_num_logits_rows = 64};
}

std::vector<TokenId> Counting(int64_t num_tokens) {
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < num_tokens; ++i) tokens.push_back(static_cast<TokenId>(i % 1000));
  return tokens;
}

// Runs a request alone to its end.
Request Run(SchedulerFixture* fixture, const RequestOptions& options) {
  const RequestId id = fixture->Add(options);
  fixture->RunToEnd();
  Request request = *fixture->finished.at(id);
  const auto prompt_end = request.token_ids.begin() + request.num_prompt_tokens;
  CHECK(request.token_ids == ExpectedTokens({request.token_ids.begin(), prompt_end}, request.max_tokens));
  return request;
}

TEST_CASE("A repeated prompt computes its last block alone, and says the same") {
  SchedulerFixture fixture(Config(), 64, kBlockSize);
  const RequestOptions options = {.max_tokens = 8, .prompt = Counting(200)};
  CHECK(Run(&fixture, options).num_first_cached_tokens == 0);
  CHECK(Run(&fixture, options).num_first_cached_tokens == 192);
}

TEST_CASE("The next chat turn finds the answer that it repeats") {
  SchedulerFixture fixture(Config(), 64, kBlockSize);
  const Request first = Run(&fixture, {.max_tokens = 60, .prompt = Counting(50)});
  std::vector<TokenId> next_turn = first.token_ids;
  const std::vector<TokenId> question = {7, 8, 9};
  next_turn.insert(next_turn.end(), question.begin(), question.end());
  // 110 tokens, of which the last was never computed: six full blocks of 109.
  CHECK(Run(&fixture, {.max_tokens = 4, .prompt = next_turn}).num_first_cached_tokens == 96);
}

TEST_CASE("Requests that run at once share what one has computed") {
  SchedulerFixture fixture(Config(), 32, kBlockSize);
  fixture.Add({.max_tokens = 20, .prompt = Counting(64)});
  fixture.Step();
  fixture.Add({.max_tokens = 20, .prompt = Counting(65)});
  fixture.Step();
  CHECK(fixture.cache.Usage().num_shared_blocks == 4);
  fixture.RunToEnd();
  for (const auto& [id, request] : fixture.finished) {
    const auto prompt_end = request->token_ids.begin() + request->num_prompt_tokens;
    CHECK(request->token_ids == ExpectedTokens({request->token_ids.begin(), prompt_end}, request->max_tokens));
  }
}

TEST_CASE("A preempted request finds its own blocks again if they still stand") {
  SchedulerFixture fixture(Config(), 12, kBlockSize);
  const RequestId first = fixture.Add({.max_tokens = 60, .prompt = Counting(60)});
  const RequestId second = fixture.Add({.num_prompt_tokens = 90, .max_tokens = 60});
  fixture.RunToEnd();
  CHECK(fixture.scheduler.num_preemptions() > 0);
  CHECK(fixture.finished.at(first)->num_preemptions == 0);
  const Request& preempted = *fixture.finished.at(second);
  const int64_t num_lost = preempted.num_preemptions * 90;
  CHECK(fixture.scheduler.num_recomputed_tokens() < num_lost / 2);
  const auto prompt_end = preempted.token_ids.begin() + 90;
  CHECK(preempted.token_ids == ExpectedTokens({preempted.token_ids.begin(), prompt_end}, 60));
}

TEST_CASE("A request that does not read the cache computes everything, with the same result") {
  SchedulerFixture fixture(Config(), 64, kBlockSize);
  Run(&fixture, {.max_tokens = 8, .prompt = Counting(100)});
  const RequestId id = fixture.Add({.max_tokens = 8, .reads_prefix_cache = false, .prompt = Counting(100)});
  fixture.RunToEnd();
  CHECK(fixture.finished.at(id)->num_first_cached_tokens == 0);
}

TEST_CASE("Prompt log-probabilities are all there, whatever is cached") {
  SchedulerFixture fixture(Config(), 64, kBlockSize);
  Run(&fixture, {.max_tokens = 8, .prompt = Counting(100)});
  const RequestId id = fixture.Add({.max_tokens = 8, .wants_prompt_logprobs = true, .prompt = Counting(100)});
  fixture.RunToEnd();
  CHECK(fixture.prompt_rows.at(id).size() == 99);
  CHECK(std::ranges::is_sorted(fixture.prompt_rows.at(id)));
}

TEST_CASE("A hit leaves tokens of a step to others") {
  SchedulerConfig config = Config();
  config.max_num_batched_tokens = 20;
  SchedulerFixture fixture(config, 64, kBlockSize);
  Run(&fixture, {.max_tokens = 1, .prompt = Counting(96)});
  fixture.Add({.max_tokens = 1, .prompt = Counting(100)});  // 4 tokens past the cached ones
  const RequestId other = fixture.Add({.num_prompt_tokens = 16, .max_tokens = 1});
  fixture.Step();
  CHECK(fixture.finished.contains(other));
}

}  // namespace
}  // namespace quire
