#pragma once

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "tests/support/fake_clock.h"

namespace quire::testing {

// The next token that the model of these tests chooses: any function of all tokens before will do.
inline TokenId NextToken(std::span<const TokenId> tokens) {
  uint32_t hash = 2166136261U;
  for (const TokenId token : tokens) hash = (hash ^ static_cast<uint32_t>(token)) * 16777619U;
  return static_cast<TokenId>(hash % 50000U);
}

// What the request would put out if it were alone.
inline std::vector<TokenId> ExpectedTokens(std::vector<TokenId> prompt, int64_t max_tokens) {
  for (int64_t i = 0; i < max_tokens; ++i) prompt.push_back(NextToken(prompt));
  return prompt;
}

struct RequestOptions {
  int64_t num_prompt_tokens = 1;
  int64_t max_tokens = 1;
  bool wants_prompt_logprobs = false;
  bool reads_prefix_cache = true;
  std::string tenant = "default";
  int32_t priority = 0;
  std::optional<TimePoint> deadline = {};
  std::vector<TokenId> prompt = {};  // empty: tokens of its own
};

inline std::unique_ptr<Request> MakeRequest(uint64_t id, const RequestOptions& options) {
  auto request = std::make_unique<Request>();
  request->id = RequestId{id};
  request->tenant = options.tenant;
  request->priority = options.priority;
  request->token_ids = options.prompt;
  for (int64_t i = 0; options.prompt.empty() && i < options.num_prompt_tokens; ++i) {
    request->token_ids.push_back(static_cast<TokenId>((id * 1009 + static_cast<uint64_t>(i) * 31) % 50000));
  }
  request->num_prompt_tokens = request->num_tokens();
  request->max_tokens = options.max_tokens;
  request->reads_prefix_cache = options.reads_prefix_cache;
  if (options.wants_prompt_logprobs) request->sampling.num_prompt_logprobs = 0;
  return request;
}

// A model whose cache is an array of token ids. It sees the cache through block tables only, so a block given to
// two requests, or taken from one that still reads it, changes what it samples.
class SlotModel {
 public:
  SlotModel(int64_t num_blocks, int64_t block_size)
      : block_size_(block_size), slots_(static_cast<size_t>(num_blocks * block_size), -1) {}

  // Runs a step: one token for each entry that samples.
  std::vector<TokenId> Execute(const StepPlan& plan) {
    for (const ScheduledRequest& scheduled : plan.requests) Write(scheduled);
    std::vector<TokenId> sampled;
    for (const ScheduledRequest& scheduled : plan.requests) {
      if (scheduled.samples_token) sampled.push_back(NextToken(Read(scheduled)));
    }
    return sampled;
  }

 private:
  size_t SlotOf(const ScheduledRequest& scheduled, int64_t position) const {
    const BlockId block = scheduled.block_table[static_cast<size_t>(position / block_size_)];
    return static_cast<size_t>(block * block_size_ + position % block_size_);
  }

  void Write(const ScheduledRequest& scheduled) {
    int64_t position = scheduled.first_position;
    for (const TokenId token : scheduled.token_ids) slots_[SlotOf(scheduled, position++)] = token;
  }

  std::vector<TokenId> Read(const ScheduledRequest& scheduled) const {
    const int64_t num_tokens = scheduled.first_position + scheduled.num_scheduled_tokens();
    std::vector<TokenId> tokens;
    for (int64_t position = 0; position < num_tokens; ++position) tokens.push_back(slots_[SlotOf(scheduled, position)]);
    return tokens;
  }

  int64_t block_size_;
  std::vector<TokenId> slots_;  // [num_blocks * block_size]
};

// A scheduler with all it needs. Every call is followed by its validator.
class SchedulerFixture {
 public:
  SchedulerFixture(const SchedulerConfig& scheduler_config, int64_t num_blocks, int64_t block_size,
                   bool enable_prefix_caching = true)
      : config(scheduler_config),
        cache({.num_blocks = num_blocks, .block_size = block_size, .enable_prefix_caching = enable_prefix_caching},
              &clock),
        scheduler(scheduler_config, &cache, &clock),
        model(num_blocks, block_size) {}

  RequestId Add(const RequestOptions& options) {
    auto request = MakeRequest(next_id_++, options);
    request->arrival_time = clock.Now();
    request->deadline = options.deadline;
    const RequestId id = request->id;
    const absl::Status status = scheduler.AddRequest(std::move(request));
    INFO(status.ToString());
    REQUIRE(status.ok());
    RequireNoViolation();
    return id;
  }

  const StepPlan& Plan() {
    std::map<RequestId, int64_t> num_preemptions_before;
    for (const Request* request : scheduler.Requests()) num_preemptions_before[request->id] = request->num_preemptions;
    scheduler.Schedule(&plan);
    RequireNoViolation();
    RequirePlanIsSound();
    for (const ScheduledRequest& scheduled : plan.requests) {
      // None is preempted and planned in the same step.
      REQUIRE(scheduler.Find(scheduled.request_id)->num_preemptions == num_preemptions_before[scheduled.request_id]);
    }
    return plan;
  }

  // Plans and runs a step, and removes what is complete then.
  const StepPlan& Step() {
    Plan();
    CommitStep();
    return plan;
  }

  void CommitStep() {
    CollectPromptRows();
    scheduler.Update(plan, model.Execute(plan));
    RequireNoViolation();
    std::vector<RequestId> complete;
    for (const Request* request : scheduler.Requests()) {
      if (request->num_output_tokens() == request->max_tokens) complete.push_back(request->id);
    }
    for (const RequestId id : complete) finished[id] = Remove(id);
  }

  // Steps until `reached`, which must come before all work is done.
  void StepUntil(auto reached) {
    while (!reached()) REQUIRE_FALSE(Step().empty());
  }

  // Each step must advance something, and what is preempted over and over does not count.
  void RunToEnd() {
    for (int num_steps = 0; scheduler.HasWork(); ++num_steps) {
      REQUIRE(num_steps < 100000);
      REQUIRE_FALSE(Step().empty());
    }
  }

  std::unique_ptr<Request> Remove(RequestId id) {
    auto request = scheduler.Remove(id);
    RequireNoViolation();
    return request;
  }

  // Ids of the plan's entries with their numbers of tokens.
  std::vector<std::pair<RequestId, int64_t>> PlannedTokens() const {
    std::vector<std::pair<RequestId, int64_t>> planned;
    for (const auto& scheduled : plan.requests) {
      planned.emplace_back(scheduled.request_id, scheduled.num_scheduled_tokens());
    }
    return planned;
  }

  void RequireNoViolation() const {
    REQUIRE(FindSchedulerViolations(scheduler.Snapshot()) == std::vector<std::string>{});
  }

  SchedulerConfig config;
  FakeClock clock;
  KvCacheManager cache;
  Scheduler scheduler;
  SlotModel model;
  StepPlan plan;
  std::map<RequestId, std::unique_ptr<Request>> finished;
  // Positions whose row was for a prompt log-probability, in the order of their delivery.
  std::map<RequestId, std::vector<int64_t>> prompt_rows;

 private:
  void RequirePlanIsSound() {
    int64_t num_tokens = 0;
    int64_t num_logits_rows = 0;
    std::set<RequestId> seen;
    for (const ScheduledRequest& scheduled : plan.requests) {
      const Request* request = scheduler.Find(scheduled.request_id);
      REQUIRE(request != nullptr);
      REQUIRE(request->status == RequestStatus::kRunning);
      REQUIRE(seen.insert(scheduled.request_id).second);
      REQUIRE(scheduled.num_scheduled_tokens() >= 1);
      REQUIRE(scheduled.first_position == request->num_computed_tokens);
      REQUIRE(scheduled.token_ids.data() == request->token_ids.data() + scheduled.first_position);
      const int64_t end_position = scheduled.first_position + scheduled.num_scheduled_tokens();
      REQUIRE(scheduled.samples_token == (end_position == request->num_tokens()));
      REQUIRE(static_cast<int64_t>(scheduled.block_table.size()) >= cache.BlocksFor(end_position));
      REQUIRE(scheduled.first_logits_row >= 0);
      REQUIRE(scheduled.first_logits_row <= scheduled.end_logits_row);
      REQUIRE(scheduled.end_logits_row == scheduled.num_scheduled_tokens());
      REQUIRE(scheduled.num_logits_rows() >= (scheduled.samples_token ? 1 : 0));
      num_tokens += scheduled.num_scheduled_tokens();
      num_logits_rows += scheduled.num_logits_rows();
    }
    REQUIRE(plan.num_tokens == num_tokens);
    REQUIRE(plan.num_logits_rows == num_logits_rows);
    REQUIRE(num_tokens <= config.max_num_batched_tokens);
    REQUIRE(num_logits_rows <= config.max_num_logits_rows);
  }

  void CollectPromptRows() {
    for (const ScheduledRequest& scheduled : plan.requests) {
      const int64_t end = scheduled.end_logits_row - (scheduled.samples_token ? 1 : 0);
      for (int64_t row = scheduled.first_logits_row; row < end; ++row) {
        prompt_rows[scheduled.request_id].push_back(scheduled.first_position + row);
      }
    }
  }

  uint64_t next_id_ = 1;
};

}  // namespace quire::testing
