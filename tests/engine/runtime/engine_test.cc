#include "engine/runtime/engine.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <vector>

#include "catch2/catch_test_macros.hpp"
#include "catch2/matchers/catch_matchers_floating_point.hpp"
#include "tests/support/fake_clock.h"
#include "tests/support/fake_engine.h"

namespace quire {
namespace {

using Catch::Matchers::WithinAbs;
using testing::FakeClock;
using testing::FakeEngine;
using testing::FakeEngineConfig;
using testing::FakeModelRunner;
using testing::GreedyRequest;
using testing::MakeFakeEngine;
using testing::RecordingSink;

const std::vector<TokenId> kPrompt = {5, 6, 7, 8, 9, 10};

std::vector<TokenId> Expected(const std::vector<TokenId>& prompt, int64_t num_tokens) {
  return FakeModelRunner::GreedyContinuation(prompt, num_tokens, 97);
}

// An engine, its clock and its requests, numbered from 1.
class Harness {
 public:
  explicit Harness(const FakeEngineConfig& config = {}) : fake_(MakeFakeEngine(config, &clock_)) {}

  std::shared_ptr<RecordingSink> Add(GenerationRequest request) {
    auto sink = std::make_shared<RecordingSink>();
    request.sink = sink;
    fake_.engine->AddRequest(RequestId{++num_added_}, std::move(request));
    return sink;
  }
  std::shared_ptr<RecordingSink> Add(const std::vector<TokenId>& prompt, std::optional<int64_t> max_tokens) {
    return Add(GreedyRequest(prompt, max_tokens, nullptr, clock_));
  }
  GenerationRequest Greedy(const std::vector<TokenId>& prompt, std::optional<int64_t> max_tokens) {
    return GreedyRequest(prompt, max_tokens, nullptr, clock_);
  }
  StepOutcome Step() {
    const StepOutcome outcome = engine().Step();
    CHECK(engine().CheckInvariants().empty());
    return outcome;
  }
  void RunToEnd() {
    while (engine().HasWork()) Step();
  }
  std::string StateOf(size_t place) { return engine().Stats(true).requests.at(place).state; }
  int64_t NumUsedBlocks() { return engine().Stats(false).cache.num_used_blocks; }

  Engine& engine() { return *fake_.engine; }
  FakeModelRunner& runner() { return *fake_.runner; }
  FakeClock& clock() { return clock_; }

 private:
  FakeClock clock_;
  FakeEngine fake_;
  uint64_t num_added_ = 0;
};

TEST_CASE("a step without requests computes nothing") {
  Harness harness;
  CHECK(harness.Step() == StepOutcome::kIdle);
  CHECK(harness.runner().num_calls() == 0);
}

TEST_CASE("max_tokens ends a request with LENGTH, its usage and its blocks") {
  Harness harness;
  const auto sink = harness.Add(kPrompt, 5);
  harness.RunToEnd();
  CHECK(sink->token_ids() == Expected(kPrompt, 5));
  CHECK(sink->num_finishes() == 1);
  CHECK(sink->result().status.ok());
  CHECK(sink->result().finish_reason == FinishReason::kLength);
  CHECK(sink->result().num_prompt_tokens == 6);
  CHECK(sink->result().num_output_tokens == 5);
  CHECK(harness.NumUsedBlocks() == 0);
  CHECK(harness.engine().Stats(false).num_output_tokens == 5);
  CHECK(harness.engine().Stats(false).num_prompt_tokens == 6);
  CHECK(harness.engine().Stats(false).num_finished_requests == 1);
}

TEST_CASE("without max_tokens the model's length ends a request") {
  FakeEngineConfig config;
  config.max_model_len = 20;
  Harness harness(config);
  const auto sink = harness.Add(kPrompt, std::nullopt);
  harness.RunToEnd();
  CHECK(sink->token_ids() == Expected(kPrompt, 14));
  CHECK(sink->result().finish_reason == FinishReason::kLength);
}

TEST_CASE("an end-of-generation token is delivered, counted and ends the request") {
  const std::vector<TokenId> all = Expected(kPrompt, 10);
  FakeEngineConfig config;
  config.end_of_generation_ids = {96, all[3]};
  Harness harness(config);
  const auto sink = harness.Add(kPrompt, 10);
  GenerationRequest ignoring = harness.Greedy(kPrompt, 10);
  ignoring.sampling.ignore_eos = true;
  const auto ignoring_sink = harness.Add(std::move(ignoring));
  harness.RunToEnd();
  const auto first = std::ranges::find_if(all, [&](TokenId token) { return token == all[3] || token == 96; });
  CHECK(sink->token_ids() == std::vector<TokenId>(all.begin(), first + 1));
  CHECK(sink->result().finish_reason == FinishReason::kStopToken);
  CHECK(sink->result().num_output_tokens == first - all.begin() + 1);
  CHECK(ignoring_sink->token_ids() == all);
  CHECK(ignoring_sink->result().finish_reason == FinishReason::kLength);
}

TEST_CASE("stop_token_ids end a request even with ignore_eos, and win over LENGTH") {
  const std::vector<TokenId> all = Expected(kPrompt, 4);
  Harness harness;
  GenerationRequest request = harness.Greedy(kPrompt, 4);
  request.sampling.stop_token_ids = {all[3]};
  request.sampling.ignore_eos = true;
  const auto sink = harness.Add(std::move(request));
  harness.RunToEnd();
  CHECK(sink->result().finish_reason == FinishReason::kStopToken);
}

TEST_CASE("a request is cancelled in every state, its blocks are free at once and neighbours go on") {
  FakeEngineConfig config;
  config.num_blocks = 12;
  config.max_model_len = 40;
  config.max_num_batched_tokens = 8;
  for (const std::string state : {"queued", "prefill", "decode", "preempted"}) {
    INFO(state);
    Harness harness(config);
    const auto neighbour = harness.Add(kPrompt, 30);
    const std::vector<TokenId> prompt(20, 3);
    const auto victim = harness.Add(prompt, 15);
    if (state != "queued") harness.Step();
    if (state == "prefill") {
      CHECK(harness.engine().Stats(true).requests.at(1).num_computed_tokens == 2);
    } else if (state == "decode") {
      while (victim->tokens().size() < 2) harness.Step();
      CHECK(harness.StateOf(1) == "running");
    } else if (state == "preempted") {
      while (harness.StateOf(1) != "preempted") harness.Step();
    } else {
      CHECK(harness.StateOf(1) == "waiting");
    }
    const std::vector<TokenId> before = victim->token_ids();
    harness.engine().Cancel(RequestId{2}, absl::CancelledError("the caller left"));
    CHECK(harness.engine().CheckInvariants().empty());
    const EngineStats stats = harness.engine().Stats(true);
    REQUIRE(stats.requests.size() == 1);
    CHECK(stats.cache.num_used_blocks == stats.requests[0].num_blocks);
    CHECK(victim->num_finishes() == 1);
    CHECK(victim->result().status.code() == absl::StatusCode::kCancelled);
    CHECK(victim->result().finish_reason == FinishReason::kUnspecified);
    harness.RunToEnd();
    CHECK(harness.NumUsedBlocks() == 0);
    CHECK(victim->token_ids() == before);
    CHECK(neighbour->token_ids() == Expected(kPrompt, 30));
    // The end of a request that has ended is nothing.
    harness.engine().Cancel(RequestId{2}, absl::CancelledError("again"));
    harness.engine().Finish(RequestId{1}, FinishReason::kStopString, 1);
    CHECK(victim->num_finishes() == 1);
    CHECK(neighbour->num_finishes() == 1);
  }
}

TEST_CASE("deadlines end requests in the queue and while they generate, tokens made are kept") {
  FakeEngineConfig config;
  config.max_num_seqs = 1;
  Harness harness(config);
  GenerationRequest running = harness.Greedy(kPrompt, 50);
  running.deadline = harness.clock().Now() + std::chrono::seconds(5);
  GenerationRequest queued = harness.Greedy(kPrompt, 50);
  queued.deadline = harness.clock().Now() + std::chrono::seconds(2);
  const auto running_sink = harness.Add(std::move(running));
  const auto queued_sink = harness.Add(std::move(queued));
  harness.Step();
  harness.clock().Advance(std::chrono::seconds(2));
  harness.Step();
  CHECK(queued_sink->result().status.code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(queued_sink->tokens().empty());
  CHECK_THAT(queued_sink->result().timings.queue_seconds, WithinAbs(2.0, 1e-9));
  CHECK(running_sink->num_finishes() == 0);
  harness.clock().Advance(std::chrono::seconds(3));
  CHECK(harness.Step() == StepOutcome::kIdle);
  CHECK(running_sink->result().status.code() == absl::StatusCode::kDeadlineExceeded);
  CHECK(running_sink->token_ids() == Expected(kPrompt, 2));
  CHECK(running_sink->result().num_output_tokens == 2);
  CHECK(harness.NumUsedBlocks() == 0);
}

TEST_CASE("timings are told from arrival") {
  FakeEngineConfig config;
  config.max_num_batched_tokens = 4;
  Harness harness(config);
  const auto sink = harness.Add(kPrompt, 2);
  harness.clock().Advance(std::chrono::seconds(1));
  harness.Step();  // 4 of 6 prompt tokens
  harness.clock().Advance(std::chrono::seconds(2));
  harness.Step();
  harness.clock().Advance(std::chrono::seconds(4));
  harness.Step();
  REQUIRE(sink->num_finishes() == 1);
  CHECK_THAT(sink->result().timings.queue_seconds, WithinAbs(1.0, 1e-9));
  CHECK_THAT(sink->result().timings.time_to_first_token_seconds, WithinAbs(3.0, 1e-9));
  CHECK_THAT(sink->result().timings.total_seconds, WithinAbs(7.0, 1e-9));
}

TEST_CASE("a step that fails ends the requests of its plan only") {
  FakeEngineConfig config;
  config.max_num_seqs = 2;
  Harness harness(config);
  const auto first = harness.Add(kPrompt, 4);
  const auto second = harness.Add({1, 2}, 4);
  const auto waiting = harness.Add({3, 4, 5}, 4);
  harness.runner().FailAtCall(1);
  CHECK(harness.Step() == StepOutcome::kRan);
  CHECK(harness.Step() == StepOutcome::kFailed);
  CHECK(first->result().status.code() == absl::StatusCode::kInternal);
  CHECK(second->result().status.code() == absl::StatusCode::kInternal);
  CHECK(first->token_ids() == Expected(kPrompt, 1));
  CHECK(waiting->num_finishes() == 0);
  CHECK(harness.NumUsedBlocks() == 0);
  harness.RunToEnd();
  CHECK(waiting->token_ids() == Expected({3, 4, 5}, 4));
  CHECK(harness.engine().Stats(false).num_failed_steps == 1);
}

TEST_CASE("broken logits end their own request only") {
  Harness harness;
  harness.runner().BreakSequences(1, 3);
  const auto before = harness.Add(kPrompt, 6);
  const auto broken = harness.Add({1, 2}, 6);
  const auto after = harness.Add({3, 4, 5}, 6);
  GenerationRequest with_logprobs = harness.Greedy({1, 2, 3, 4, 5}, 6);
  with_logprobs.sampling.num_prompt_logprobs = 1;
  const auto broken_prompt = harness.Add(std::move(with_logprobs));
  harness.RunToEnd();
  CHECK(before->token_ids() == Expected(kPrompt, 6));
  CHECK(after->token_ids() == Expected({3, 4, 5}, 6));
  CHECK(broken->token_ids() == Expected({1, 2}, 2));
  CHECK(broken->result().status.code() == absl::StatusCode::kInternal);
  CHECK(broken->result().num_output_tokens == 2);
  CHECK(broken_prompt->result().status.code() == absl::StatusCode::kInternal);
  CHECK(broken_prompt->tokens().empty());
}

TEST_CASE("an end found outside counts only the tokens up to it") {
  Harness harness;
  const auto sink = harness.Add(kPrompt, 20);
  for (int i = 0; i < 5; ++i) harness.Step();
  harness.engine().Finish(RequestId{1}, FinishReason::kStopString, 3);
  CHECK(sink->result().status.ok());
  CHECK(sink->result().finish_reason == FinishReason::kStopString);
  CHECK(sink->result().num_output_tokens == 3);
  CHECK(!harness.engine().HasWork());
}

TEST_CASE("prompt log-probabilities come for each prompt token but the first, in order, chunked or not") {
  for (const int64_t budget : {4, 64}) {
    FakeEngineConfig config;
    config.max_num_batched_tokens = budget;
    Harness harness(config);
    GenerationRequest request = harness.Greedy(kPrompt, 2);
    request.sampling.num_prompt_logprobs = 3;
    const auto sink = harness.Add(std::move(request));
    harness.RunToEnd();
    const std::vector<PositionLogprobs> logprobs = sink->prompt_logprobs();
    REQUIRE(logprobs.size() == kPrompt.size() - 1);
    std::vector<float> logits(97);
    for (size_t i = 0; i < logprobs.size(); ++i) {
      CHECK(logprobs[i].chosen.token_id == kPrompt[i + 1]);
      REQUIRE(logprobs[i].top.size() == 3);
      FakeModelRunner::ComputeLogits(std::span(kPrompt).first(i + 1), logits);
      CHECK(logprobs[i].top[0].token_id == std::ranges::max_element(logits) - logits.begin());
      const float difference = logits[kPrompt[i + 1]] - *std::ranges::max_element(logits);
      CHECK_THAT(logprobs[i].chosen.logprob - logprobs[i].top[0].logprob, WithinAbs(difference, 1e-5));
    }
    CHECK(sink->token_ids() == Expected(kPrompt, 2));
  }
}

TEST_CASE("log-probabilities come with output tokens when asked, and only then") {
  Harness harness;
  GenerationRequest request = harness.Greedy(kPrompt, 3);
  request.sampling.num_logprobs = 2;
  const auto with = harness.Add(std::move(request));
  const auto without = harness.Add(kPrompt, 3);
  harness.RunToEnd();
  for (const OutputToken& token : with->tokens()) {
    REQUIRE(token.logprobs.has_value());
    CHECK(token.logprobs->chosen.token_id == token.token_id);
    CHECK(token.logprobs->top.size() == 2);
    CHECK(token.logprobs->top[0].token_id == token.token_id);  // greedy
  }
  for (const OutputToken& token : without->tokens()) CHECK(!token.logprobs.has_value());
  CHECK(without->prompt_logprobs().empty());
}

TEST_CASE("the same seed gives the same tokens, another seed others, and no seed a new stream each") {
  Harness harness;
  const auto add = [&](std::optional<uint64_t> seed) {
    GenerationRequest request = harness.Greedy(kPrompt, 20);
    request.sampling.temperature = 1.0F;
    request.sampling.seed = seed;
    return harness.Add(std::move(request));
  };
  const auto a = add(7);
  const auto b = add(7);
  const auto c = add(8);
  const auto d = add(std::nullopt);
  const auto e = add(std::nullopt);
  harness.RunToEnd();
  CHECK(a->token_ids() == b->token_ids());
  CHECK(a->token_ids() != c->token_ids());
  CHECK(d->token_ids() != e->token_ids());
}

// Tokens, log-probabilities and ends of requests of every kind, one of which meets broken logits.
std::vector<std::shared_ptr<RecordingSink>> RunRequestsOfEveryKind(int64_t num_threads) {
  FakeEngineConfig config;
  config.num_threads = num_threads;
  Harness harness(config);
  harness.runner().BreakSequences(/*first_token=*/6, /*from_position=*/8);
  std::vector<std::shared_ptr<RecordingSink>> sinks;
  for (TokenId first_token = 1; first_token <= 12; ++first_token) {
    GenerationRequest request = harness.Greedy({first_token, 5, 7, 9}, 20);
    if (first_token % 2 == 0) {
      request.sampling.temperature = 0.9F;
      request.sampling.seed = first_token;
      request.sampling.top_p = first_token % 4 == 0 ? 0.8F : 1.0F;
      request.sampling.repetition_penalty = 1.2F;
    }
    if (first_token % 3 == 0) request.sampling.num_logprobs = 3;
    if (first_token % 5 == 0) request.sampling.num_prompt_logprobs = 2;
    sinks.push_back(harness.Add(std::move(request)));
  }
  harness.RunToEnd();
  return sinks;
}

TEST_CASE("requests sampled on several threads get what they get on one") {
  const auto expected = RunRequestsOfEveryKind(1);
  const auto sampled = RunRequestsOfEveryKind(3);
  for (size_t i = 0; i < expected.size(); ++i) {
    INFO("request " << i);
    CHECK(sampled[i]->num_finishes() == 1);
    CHECK(sampled[i]->result().status == expected[i]->result().status);
    CHECK(sampled[i]->result().status.ok() == (i != 5));
    CHECK(sampled[i]->token_ids() == expected[i]->token_ids());
    CHECK(sampled[i]->prompt_logprobs().size() == expected[i]->prompt_logprobs().size());
    const std::vector<OutputToken> tokens = sampled[i]->tokens();
    const std::vector<OutputToken> expected_tokens = expected[i]->tokens();
    for (size_t j = 0; j < tokens.size(); ++j) {
      const auto& logprobs = tokens[j].logprobs;
      REQUIRE(logprobs.has_value() == expected_tokens[j].logprobs.has_value());
      if (logprobs) CHECK(logprobs->chosen.logprob == expected_tokens[j].logprobs->chosen.logprob);
    }
  }
}

TEST_CASE("a constraint rules the tokens of its request and is told each one") {
  class OnlyEven : public TokenConstraint {
   public:
    void FillMask(std::span<uint32_t> mask) override { std::ranges::fill(mask, 0x55555555U); }
    void Accept(TokenId token_id) override { accepted.push_back(token_id); }
    std::vector<TokenId> accepted;
  };
  Harness harness;
  const auto constraint = std::make_shared<OnlyEven>();
  GenerationRequest request = harness.Greedy(kPrompt, 10);
  request.constraint = constraint;
  const auto sink = harness.Add(std::move(request));
  const auto neighbour = harness.Add(kPrompt, 10);
  harness.RunToEnd();
  CHECK(std::ranges::all_of(sink->token_ids(), [](TokenId token) { return token % 2 == 0; }));
  CHECK(constraint->accepted == sink->token_ids());
  CHECK(neighbour->token_ids() == Expected(kPrompt, 10));
}

TEST_CASE("tenants' limits that change are told of those that have requests") {
  Harness harness;
  const auto sink = harness.Add(kPrompt, 10);
  harness.Step();
  REQUIRE(harness.engine().Stats(true).tenants.at(0).weight == 1);
  harness.engine().SetTenantLimits({{"*", {.weight = 3, .max_running_requests = {}, .max_kv_blocks = {}}}});
  CHECK(harness.engine().Stats(true).tenants.at(0).weight == 3);
  harness.RunToEnd();
  CHECK(sink->token_ids() == Expected(kPrompt, 10));
}

TEST_CASE("an engine that is destroyed ends what it holds") {
  std::shared_ptr<RecordingSink> running;
  std::shared_ptr<RecordingSink> waiting;
  {
    FakeEngineConfig config;
    config.max_num_seqs = 1;
    Harness harness(config);
    running = harness.Add(kPrompt, 20);
    waiting = harness.Add(kPrompt, 20);
    harness.Step();
  }
  CHECK(running->num_finishes() == 1);
  CHECK(waiting->num_finishes() == 1);
  CHECK(running->result().status.code() == absl::StatusCode::kUnavailable);
}

TEST_CASE("decodes go before prefills in a step, and a step is not larger than its budget") {
  FakeEngineConfig config;
  config.max_num_batched_tokens = 8;
  Harness harness(config);
  harness.Add(kPrompt, 10);
  harness.Step();
  harness.Add(std::vector<TokenId>(30, 2), 10);
  harness.RunToEnd();
  for (const FakeModelRunner::CallRecord& call : harness.runner().calls()) CHECK(call.num_tokens <= 8);
  const FakeModelRunner::CallRecord& mixed = harness.runner().calls().at(1);
  REQUIRE(mixed.entries.size() == 2);
  CHECK(mixed.entries[0].num_tokens == 1);
  CHECK(mixed.entries[1].num_tokens == 7);
  CHECK(mixed.num_logits_rows == 1);
}

}  // namespace
}  // namespace quire
