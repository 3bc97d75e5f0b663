// How long one step of bookkeeping takes: Schedule and Update with many requests running and many more waiting.

#include <benchmark/benchmark.h>

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "bench/cost_model.h"
#include "bench/manual_clock.h"
#include "engine/base/check.h"
#include "engine/kv_cache/kv_cache_manager.h"
#include "engine/scheduler/scheduler.h"

namespace quire {
namespace {

constexpr int64_t kNumRunning = 256;
constexpr int64_t kNumWaiting = 10000;
constexpr int64_t kPromptTokens = 400;
constexpr int64_t kOutputTokens = 200;
constexpr int64_t kNumPriorities = 3;

// What keeps the waiting requests from running.
enum class Bound { kSequences, kBlocks, kTenants };

// A scheduler with kNumRunning requests that decode and kNumWaiting that wait, kept so: one ends in most steps, and
// another comes.
class LoadedScheduler {
 public:
  LoadedScheduler(int64_t num_tenants, Bound bound)
      : num_tenants_(num_tenants),
        cache_({.num_blocks = bound == Bound::kBlocks ? kNumRunning * 32 : kNumRunning * 64, .block_size = 16},
               &clock_),
        scheduler_(MakeConfig(num_tenants, bound), &cache_, &clock_) {
    for (int64_t i = 0; i < kNumRunning + kNumWaiting; ++i) Add();
    // Until all who can run do, and decode at different places of their outputs.
    for (int64_t i = 0; i < 2 * kOutputTokens + kNumRunning; ++i) {
      Step();
      Replace();
    }
  }

  void Step() {
    scheduler_.Schedule(&plan_);
    sampled_.clear();
    for (const ScheduledRequest& scheduled : plan_.requests) {
      if (scheduled.samples_token) sampled_.push_back(next_token_++ % 50000);
    }
    clock_.Set(clock_.Now() + std::chrono::milliseconds(10));
    scheduler_.Update(plan_, sampled_);
  }

  // What is complete is removed, and as many come.
  void Replace() {
    for (const ScheduledRequest& scheduled : plan_.requests) {
      const Request* request = scheduler_.Find(scheduled.request_id);
      if (request->num_output_tokens() < request->max_tokens) continue;
      scheduler_.Remove(request->id);
      Add();
    }
  }

  const StepPlan& plan() const { return plan_; }
  const Scheduler& scheduler() const { return scheduler_; }

 private:
  static SchedulerConfig MakeConfig(int64_t num_tenants, Bound bound) {
    SchedulerConfig config = {.max_num_batched_tokens = 1024,
                              .max_num_seqs = bound == Bound::kSequences ? kNumRunning : 2 * kNumRunning,
                              .max_model_len = 4096,
                              .max_num_logits_rows = 2 * kNumRunning};
    if (bound == Bound::kTenants)
      config.tenants["*"].max_running_requests = std::max<int64_t>(1, kNumRunning / num_tenants);
    return config;
  }

  void Add() {
    auto request = std::make_unique<Request>();
    const int64_t number = next_id_++;
    request->id = RequestId{static_cast<uint64_t>(number)};
    request->tenant = "tenant-" + std::to_string(number % num_tenants_);
    request->priority = static_cast<int32_t>(number % kNumPriorities);
    request->arrival_time = clock_.Now();
    for (int64_t i = 0; i < kPromptTokens; ++i) {
      request->token_ids.push_back(static_cast<TokenId>((number * 7919 + i) % 50000));
    }
    request->num_prompt_tokens = kPromptTokens;
    request->max_tokens = kOutputTokens;
    QUIRE_CHECK(scheduler_.AddRequest(std::move(request)).ok());
  }

  int64_t num_tenants_;
  ManualClock clock_;
  KvCacheManager cache_;
  Scheduler scheduler_;
  StepPlan plan_;
  std::vector<TokenId> sampled_;
  int64_t next_id_ = 0;
  TokenId next_token_ = 0;
};

// Times Schedule and Update alone. share_of_decode_step: beside what the cost model says that the same step takes.
void MeasureStep(benchmark::State& state, Bound bound) {
  LoadedScheduler loaded(state.range(0), bound);
  double total_seconds = 0;
  double longest_seconds = 0;
  double modelled_seconds = 0;
  int64_t num_running = 0;
  for (auto _ : state) {
    const auto start = std::chrono::steady_clock::now();
    loaded.Step();
    const double seconds = ToSeconds(std::chrono::steady_clock::now() - start);
    state.SetIterationTime(seconds);
    total_seconds += seconds;
    longest_seconds = std::max(longest_seconds, seconds);
    modelled_seconds += CostModel().StepSeconds(loaded.plan());
    num_running += loaded.scheduler().num_running();
    loaded.Replace();
  }
  const auto num_steps = static_cast<double>(state.iterations());
  state.counters["longest_us"] = longest_seconds * 1e6;
  state.counters["running"] = static_cast<double>(num_running) / num_steps;
  state.counters["waiting"] = static_cast<double>(loaded.scheduler().num_waiting());
  state.counters["share_of_decode_step"] = total_seconds / modelled_seconds;
}

void ForFewTenants(benchmark::internal::Benchmark* step) {
  step->ArgName("tenants")->Arg(1)->Arg(8)->UseManualTime()->Unit(benchmark::kMicrosecond);
}

void ForFewAndManyTenants(benchmark::internal::Benchmark* step) {
  ForFewTenants(step);
  step->Arg(10000);
}

BENCHMARK_CAPTURE(MeasureStep, sequences_are_full, Bound::kSequences)->Apply(ForFewAndManyTenants);
BENCHMARK_CAPTURE(MeasureStep, blocks_are_full, Bound::kBlocks)->Apply(ForFewAndManyTenants);
BENCHMARK_CAPTURE(MeasureStep, tenants_are_at_their_limit, Bound::kTenants)->Apply(ForFewTenants);

}  // namespace
}  // namespace quire

BENCHMARK_MAIN();
