#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/scheduler/reference_model.h"
#include "tests/engine/scheduler/scheduler_fixture.h"
#include "tests/support/random_operations.h"

namespace quire {
namespace {

using testing::MakeRequest;
using testing::NumRandomOperations;
using testing::ReferenceModel;
using testing::WeakHash;

struct RunOptions {
  SchedulerConfig scheduler;
  int64_t num_blocks = 0;
  int64_t block_size = 0;
  bool enable_prefix_caching = true;
  BlockHashFunction hash = HashBlock;
  uint32_t seed = 0;
};

// How often things happened that the test is about.
struct Coverage {
  int64_t num_operations = 0;
  int64_t num_completed = 0;
  int64_t num_completed_after_preemption = 0;
  int64_t num_hit_tokens = 0;
  int64_t num_evictions = 0;
  int64_t num_expired = 0;
  int64_t num_failed_steps = 0;
  int64_t num_removed_in_step = 0;
};

// Calls the scheduler at random. After every call its validator and the reference model must find nothing.
class RandomRun {
 public:
  explicit RandomRun(const RunOptions& options)
      : options_(options),
        random_(options.seed),
        cache_({.num_blocks = options.num_blocks,
                .block_size = options.block_size,
                .enable_prefix_caching = options.enable_prefix_caching},
               &clock_, options.hash),
        scheduler_(options.scheduler, &cache_, &clock_),
        model_(options.num_blocks, options.block_size),
        reference_(options.scheduler, options.num_blocks, options.block_size) {
    for (int i = 0; i < 3; ++i) texts_.push_back(RandomTokens(40));
  }

  Coverage Run(int64_t num_operations) {
    while (coverage_.num_operations < num_operations) DoAnything();
    for (int num_steps = 0; scheduler_.HasWork(); ++num_steps) {
      REQUIRE(num_steps < 100000);
      Step(/*remove_in_step=*/false);
    }
    CHECK(cache_.Usage().num_used_blocks == 0);
    coverage_.num_completed = reference_.num_completed();
    coverage_.num_completed_after_preemption = reference_.num_completed_after_preemption();
    coverage_.num_hit_tokens = reference_.num_hit_tokens();
    coverage_.num_evictions = cache_.Usage().num_evictions;
    return coverage_;
  }

 private:
  int64_t Below(int64_t bound) { return std::uniform_int_distribution<int64_t>(0, bound - 1)(random_); }
  bool OneIn(int64_t n) { return Below(n) == 0; }
  std::vector<TokenId> RandomTokens(int64_t count) {
    std::vector<TokenId> tokens;
    // So few different ones that unequal prompts often have equal blocks.
    for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<TokenId>(Below(2)));
    return tokens;
  }

  void DoAnything() {
    const int64_t choice = Below(100);
    if (choice < 25) {
      Add();
    } else if (choice < 31) {
      RemoveAny();  // cancelled, or ended by a stop string that was found late
    } else if (choice < 36) {
      Expire();
    } else if (choice < 41) {
      FailStep();
    } else if (choice < 42) {
      cache_.ClearPrefixCache();
      Check();
    } else {
      Step(/*remove_in_step=*/choice < 50);
    }
  }

  // Everything that must hold, after each call.
  void Check() {
    ++coverage_.num_operations;
    reference_.Check(&scheduler_, cache_);
    std::vector<std::string> violations = FindSchedulerViolations(scheduler_.Snapshot());
    violations.insert(violations.end(), reference_.violations().begin(), reference_.violations().end());
    if (violations.empty()) return;
    INFO("seed " << options_.seed << ", operation " << coverage_.num_operations);
    REQUIRE(violations == std::vector<std::string>{});
  }

  // The beginning of a text that others have too, a finished request's among them, and some tokens of its own.
  std::vector<TokenId> RandomPrompt() {
    const std::vector<TokenId>& text = texts_[static_cast<size_t>(Below(static_cast<int64_t>(texts_.size())))];
    std::vector<TokenId> prompt(text.begin(),
                                text.begin() + Below(static_cast<int64_t>(text.size()) / (OneIn(2) ? 1 : 4) + 1));
    const std::vector<TokenId> own = RandomTokens(1 + Below(12));
    prompt.insert(prompt.end(), own.begin(), own.end());
    return prompt;
  }

  void Add() {
    if (scheduler_.num_waiting() > 12) return;
    static const std::vector<std::string> tenants = {"a", "b", "c"};
    auto request = MakeRequest(next_id_++, {.max_tokens = 1 + Below(40),
                                            .wants_prompt_logprobs = OneIn(4),
                                            .tenant = tenants[static_cast<size_t>(Below(3))],
                                            .priority = static_cast<int32_t>(Below(3)) - 1,
                                            .prompt = RandomPrompt()});
    request->arrival_time = clock_.Now();
    request->reads_prefix_cache = !OneIn(8);
    request->cache_namespace = std::make_shared<const std::string>(request->tenant + (OneIn(3) ? "/salt" : "/"));
    if (OneIn(5)) request->deadline = clock_.Now() + std::chrono::milliseconds(Below(2000));
    const Request& added = *request;
    const bool fits = reference_.Fits(added);
    // A copy of what is needed: a refused request is gone.
    if (fits) reference_.OnAdd(added);
    REQUIRE(scheduler_.AddRequest(std::move(request)).ok() == fits);
    Check();
  }

  void Remove(RequestId id) {
    const std::unique_ptr<Request> removed = scheduler_.Remove(id);
    REQUIRE(removed != nullptr);
    reference_.OnRemove(*removed);
    if (removed->num_tokens() < 60) texts_[static_cast<size_t>(Below(2)) + 1] = removed->token_ids;
    Check();
  }

  void RemoveAny() {
    const auto requests = scheduler_.Requests();
    if (!requests.empty()) Remove(requests[static_cast<size_t>(Below(static_cast<int64_t>(requests.size())))]->id);
  }

  void Expire() {
    clock_.Advance(std::chrono::milliseconds(Below(1000)));
    std::vector<RequestId> expired;
    scheduler_.CollectExpired(clock_.Now(), &expired);
    std::vector<RequestId> expected;
    for (const Request* request : scheduler_.Requests()) {
      if (request->deadline && *request->deadline <= clock_.Now()) expected.push_back(request->id);
    }
    REQUIRE(std::ranges::is_permutation(expired, expected));
    for (const RequestId id : expired) Remove(id);
    coverage_.num_expired += static_cast<int64_t>(expired.size());
  }

  void Plan() {
    scheduler_.Schedule(&plan_);
    reference_.OnSchedule(plan_, &scheduler_, cache_);
    Check();
  }

  // The model wrote into the cache before it failed. Its requests end, or are tried again.
  void FailStep() {
    Plan();
    model_.Execute(plan_);
    ++coverage_.num_failed_steps;
    if (OneIn(2)) return;
    for (const ScheduledRequest& scheduled : plan_.requests) Remove(scheduled.request_id);
  }

  void Step(bool remove_in_step) {
    Plan();
    if (plan_.empty()) return;
    const std::vector<TokenId> sampled = model_.Execute(plan_);
    if (remove_in_step) {
      Remove(plan_.requests[static_cast<size_t>(Below(static_cast<int64_t>(plan_.requests.size())))].request_id);
      ++coverage_.num_removed_in_step;
    }
    const double seconds = 0.002 + 0.001 * static_cast<double>(plan_.num_tokens);
    clock_.Advance(std::chrono::duration_cast<Duration>(std::chrono::duration<double>(seconds)));
    scheduler_.ObserveStep(plan_, seconds);
    reference_.OnUpdate(plan_, sampled);
    scheduler_.Update(plan_, sampled);
    Check();
    for (const ScheduledRequest& scheduled : plan_.requests) {
      const Request* request = scheduler_.Find(scheduled.request_id);
      if (request != nullptr && request->num_output_tokens() == request->max_tokens) Remove(request->id);
    }
  }

  const RunOptions options_;
  std::mt19937 random_;
  testing::FakeClock clock_;
  KvCacheManager cache_;
  Scheduler scheduler_;
  testing::SlotModel model_;
  ReferenceModel reference_;
  StepPlan plan_;
  std::vector<std::vector<TokenId>> texts_;  // that prompts begin with
  uint64_t next_id_ = 1;
  Coverage coverage_;
};

std::vector<RunOptions> AllOptions() {
  std::vector<RunOptions> all;
  uint32_t seed = 5;
  for (const int64_t max_num_batched_tokens : {1, 7, 16, 64}) {
    for (const int64_t num_logits_rows : {8, 40}) {
      for (const int64_t block_size : {1, 4, 16}) {
        RunOptions options;
        options.block_size = block_size;
        options.num_blocks = 80 / block_size;
        options.scheduler = {.max_num_batched_tokens = max_num_batched_tokens,
                             .max_num_seqs = 8,
                             .max_model_len = 80,
                             .priority_aging_seconds = 0.5,
                             .max_num_logits_rows = num_logits_rows};
        options.scheduler.tenants["b"].max_running_requests = 2;
        options.scheduler.tenants["c"].weight = 3;
        options.scheduler.tenants["c"].max_kv_blocks = options.num_blocks * 2 / 3;
        if (seed % 3 == 0) options.scheduler.target_step_seconds = 0.012;
        if (seed % 2 == 0) options.hash = WeakHash;
        options.enable_prefix_caching = seed % 7 != 0;
        options.seed = seed++;
        all.push_back(options);
      }
    }
  }
  return all;
}

TEST_CASE("Whatever is added, removed, preempted, shared and failed, each output is what it is alone") {
  const std::vector<RunOptions> all = AllOptions();
  const int64_t num_operations = NumRandomOperations(400000);
  Coverage sum;
  for (const RunOptions& options : all) {
    const Coverage coverage = RandomRun(options).Run(num_operations / static_cast<int64_t>(all.size()));
    sum.num_operations += coverage.num_operations;
    sum.num_completed += coverage.num_completed;
    sum.num_completed_after_preemption += coverage.num_completed_after_preemption;
    sum.num_hit_tokens += coverage.num_hit_tokens;
    sum.num_evictions += coverage.num_evictions;
    sum.num_expired += coverage.num_expired;
    sum.num_failed_steps += coverage.num_failed_steps;
    sum.num_removed_in_step += coverage.num_removed_in_step;
  }
  std::printf(
      "%lld operations: %lld completed (%lld after preemption), %lld tokens found, %lld evictions, %lld expired, "
      "%lld steps failed, %lld removed during a step\n",
      static_cast<long long>(sum.num_operations), static_cast<long long>(sum.num_completed),
      static_cast<long long>(sum.num_completed_after_preemption), static_cast<long long>(sum.num_hit_tokens),
      static_cast<long long>(sum.num_evictions), static_cast<long long>(sum.num_expired),
      static_cast<long long>(sum.num_failed_steps), static_cast<long long>(sum.num_removed_in_step));
  // Enough of everything, so that the test can't pass by doing nothing.
  CHECK(sum.num_operations >= num_operations);
  CHECK(sum.num_completed > num_operations / 200);
  CHECK(sum.num_completed_after_preemption > num_operations / 2000);
  CHECK(sum.num_hit_tokens > num_operations / 50);
  CHECK(sum.num_evictions > num_operations / 200);
  CHECK(sum.num_expired > num_operations / 500);
  CHECK(sum.num_failed_steps > num_operations / 200);
  CHECK(sum.num_removed_in_step > num_operations / 200);
}

}  // namespace
}  // namespace quire
