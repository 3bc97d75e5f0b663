#include "bench/engine_bench.h"

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <random>
#include <utility>

#include "engine/base/clock.h"
#include "engine/base/status.h"
#include "engine/base/token_sink.h"

namespace quire {
namespace {

// Meets all requests of a run: when each began and ended.
class RunWatch {
 public:
  void OnFirstToken(TimePoint time) {
    const std::lock_guard lock(mutex_);
    last_begin_ = std::max(last_begin_, time);
  }
  void OnTokens(TimePoint time, int64_t count) {
    const std::lock_guard lock(mutex_);
    times_.emplace_back(time, count);
  }
  void OnFinish(const absl::Status& status, TimePoint time) {
    const std::lock_guard lock(mutex_);
    if (!status.ok()) status_ = status;
    last_end_ = std::max(last_end_, time);
    ++num_ended_;
    changed_.notify_all();
  }

  absl::Status WaitForAll(int64_t num_requests) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return num_ended_ == num_requests; });
    return status_;
  }

  // After WaitForAll.
  TimePoint last_begin() const { return last_begin_; }
  double TokensPerSecondSinceAllBegan() const {
    int64_t tokens = 0;
    for (const auto& [time, count] : times_) {
      if (time > last_begin_) tokens += count;
    }
    return static_cast<double>(tokens) / ToSeconds(last_end_ - last_begin_);
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<TimePoint, int64_t>> times_;
  TimePoint last_begin_;
  TimePoint last_end_;
  int64_t num_ended_ = 0;
  absl::Status status_;
};

class WatchSink : public TokenSink {
 public:
  explicit WatchSink(std::shared_ptr<RunWatch> watch) : watch_(std::move(watch)) {}

  void OnPromptLogprobs(std::vector<PositionLogprobs>) override {}
  void OnTokens(std::vector<OutputToken> tokens) override {
    const TimePoint now = SteadyClock().Now();
    if (!std::exchange(begun_, true)) watch_->OnFirstToken(now);
    watch_->OnTokens(now, static_cast<int64_t>(tokens.size()));
  }
  void OnFinish(const GenerationResult& result) override { watch_->OnFinish(result.status, SteadyClock().Now()); }

 private:
  std::shared_ptr<RunWatch> watch_;
  bool begun_ = false;
};

GenerationRequest MakeRequest(int64_t vocab_size, int64_t prompt_tokens, int64_t max_tokens, uint64_t seed,
                              std::shared_ptr<RunWatch> watch) {
  GenerationRequest request;
  std::mt19937_64 random(seed);
  for (int64_t i = 0; i < prompt_tokens; ++i) {
    request.prompt_token_ids.push_back(static_cast<TokenId>(random() % static_cast<uint64_t>(vocab_size)));
  }
  request.sampling.temperature = 0;
  request.sampling.ignore_eos = true;
  request.sampling.max_tokens = max_tokens;
  request.arrival_time = SteadyClock().Now();
  request.sink = std::make_shared<WatchSink>(std::move(watch));
  return request;
}

template <typename Run>
absl::StatusOr<Throughput> Repeat(int64_t num_runs, Run run) {
  Throughput throughput;
  QUIRE_RETURN_IF_ERROR(run().status());  // warms caches and threads
  for (int64_t i = 0; i < num_runs; ++i) {
    QUIRE_ASSIGN_OR_RETURN(const double tokens_per_second, run());
    throughput.tokens_per_second.push_back(tokens_per_second);
  }
  return throughput;
}

}  // namespace

double Throughput::Median() const {
  std::vector<double> sorted = tokens_per_second;
  std::sort(sorted.begin(), sorted.end());
  return sorted[sorted.size() / 2];
}
double Throughput::Min() const { return *std::min_element(tokens_per_second.begin(), tokens_per_second.end()); }
double Throughput::Max() const { return *std::max_element(tokens_per_second.begin(), tokens_per_second.end()); }

EngineBench::EngineBench(EngineLoop* loop, const BenchPlan& plan) : loop_(loop), plan_(plan) {}

absl::StatusOr<Throughput> EngineBench::Prefill() {
  return Repeat(plan_.num_runs, [&] { return RunPrefill(); });
}

absl::StatusOr<Throughput> EngineBench::Decode(int64_t batch) {
  return Repeat(plan_.num_runs, [&] { return RunDecode(batch); });
}

absl::StatusOr<double> EngineBench::RunPrefill() {
  const auto watch = std::make_shared<RunWatch>();
  const TimePoint start = SteadyClock().Now();
  QUIRE_RETURN_IF_ERROR(
      loop_->Submit(MakeRequest(loop_->limits().vocab_size, plan_.prompt_tokens, 1, next_seed_++, watch)).status());
  QUIRE_RETURN_IF_ERROR(watch->WaitForAll(1));
  return static_cast<double>(plan_.prompt_tokens) / ToSeconds(watch->last_begin() - start);
}

absl::StatusOr<double> EngineBench::RunDecode(int64_t batch) {
  const auto watch = std::make_shared<RunWatch>();
  for (int64_t i = 0; i < batch; ++i) {
    QUIRE_RETURN_IF_ERROR(loop_
                              ->Submit(MakeRequest(loop_->limits().vocab_size, plan_.decode_prompt_tokens,
                                                   plan_.decode_tokens, next_seed_++, watch))
                              .status());
  }
  QUIRE_RETURN_IF_ERROR(watch->WaitForAll(batch));
  return watch->TokensPerSecondSinceAllBegan();
}

}  // namespace quire
