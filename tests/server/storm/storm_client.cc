// A storm of generation calls on a server: more than its cache holds, of random lengths, many cancelled, some read
// slowly. When the time is over, waits until every call has its status, and prints what came of them as JSON.

#include <grpcpp/grpcpp.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <map>
#include <memory>
#include <mutex>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <string>
#include <utility>

#include "quire/v1/cache.grpc.pb.h"
#include "tests/server/connected_channel.h"
#include "tests/server/storm/storm_call.h"
#include "tests/server/storm/timer.h"

namespace quire::testing {
namespace {

struct StormOptions {
  std::string address;
  double seconds = 20;
  double load = 4;  // tokens wanted at once, by the pool's
  int64_t max_prompt_tokens = 400;
  int64_t max_output_tokens = 200;
  int64_t vocab_size = 49000;
  uint32_t seed = 1;
  double hang_seconds = 120;  // after the end, for the last calls
};

// What a server under load may answer; anything else is a fault.
bool IsExpected(const grpc::Status& status) {
  switch (status.error_code()) {
    case grpc::StatusCode::OK:
    case grpc::StatusCode::CANCELLED:
    case grpc::StatusCode::DEADLINE_EXCEEDED:
    case grpc::StatusCode::RESOURCE_EXHAUSTED: return true;
    default: return false;
  }
}

std::optional<v1::CacheStats> GetCacheStats(const std::shared_ptr<grpc::Channel>& channel) {
  const auto cache = v1::Cache::NewStub(channel);
  grpc::ClientContext context;
  v1::CacheStats stats;
  const grpc::Status status = cache->GetCacheStats(&context, {}, &stats);
  if (status.ok()) return stats;
  std::fprintf(stderr, "storm_client: %s\n", status.error_message().c_str());
  return std::nullopt;
}

// The figures that must be as before when a storm is over.
int PrintStats(const std::string& address) {
  const auto stats = GetCacheStats(ConnectedChannel(address));
  if (!stats) return 1;
  const nlohmann::json figures = {{"blocks_total", stats->blocks_total()},
                                  {"blocks_used", stats->blocks_used()},
                                  {"blocks_peak_used", stats->blocks_peak_used()},
                                  {"requests_running", stats->requests_running()},
                                  {"requests_waiting", stats->requests_waiting()},
                                  {"preemptions", stats->preemptions()},
                                  {"deferred_admissions", stats->deferred_admissions()},
                                  {"evictions", stats->evictions()},
                                  {"steps", stats->steps()},
                                  {"invariant_violations", stats->invariant_violations()}};
  std::printf("%s\n", figures.dump().c_str());
  return 0;
}

class Storm {
 public:
  explicit Storm(const StormOptions& options)
      : options_(options),
        channel_(ConnectedChannel(options.address)),
        stub_(v1::Generation::NewStub(channel_)),
        random_(options.seed) {}

  // The exit code.
  int Run() {
    const int64_t num_callers = NumCallers();
    if (num_callers == 0) return 1;
    end_time_ = Timer::Clock::now() +
                std::chrono::duration_cast<Timer::Clock::duration>(std::chrono::duration<double>(options_.seconds));
    for (int64_t i = 0; i < num_callers; ++i) StartCall();
    timer_.After(std::chrono::duration<double>(options_.seconds), [this] {
      const std::lock_guard lock(mutex_);
      is_over_ = true;
      changed_.notify_all();
    });
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_over_; });
    const bool all_ended = changed_.wait_for(lock, std::chrono::duration<double>(options_.hang_seconds),
                                             [this] { return num_ended_ == num_started_; });
    if (!all_ended) ++faults_["no status"];
    nlohmann::json report = {{"callers", num_callers}, {"calls", num_started_}, {"ended", num_ended_},
                             {"tokens", num_tokens_},  {"statuses", statuses_}, {"faults", faults_}};
    std::printf("%s\n", report.dump().c_str());
    std::fflush(stdout);
    // A call without end would keep the process: its threads are gone with it.
    if (!all_ended) std::_Exit(1);
    return faults_.empty() ? 0 : 1;
  }

 private:
  int64_t Between(int64_t first, int64_t last) { return std::uniform_int_distribution<int64_t>(first, last)(random_); }
  bool OneIn(int64_t n) { return Between(1, n) == 1; }

  // As many as together come to want `load` times the pool; 0 if the server does not answer.
  int64_t NumCallers() {
    const std::optional<v1::CacheStats> stats = GetCacheStats(channel_);
    if (!stats) return 0;
    const auto pool_tokens = static_cast<double>(stats->blocks_total() * stats->block_size_tokens());
    const double mean_tokens = static_cast<double>(options_.max_prompt_tokens + options_.max_output_tokens) / 2;
    return std::max<int64_t>(1, static_cast<int64_t>(options_.load * pool_tokens / mean_tokens));
  }

  CallPlan RandomPlan() {
    CallPlan plan;
    const int64_t num_prompt_tokens = Between(1, options_.max_prompt_tokens);
    // A third of the calls begin like others, so that prefixes are found.
    const int64_t num_shared_tokens = OneIn(3) ? num_prompt_tokens / 2 : 0;
    for (int64_t i = 0; i < num_prompt_tokens; ++i) {
      const int64_t token = i < num_shared_tokens ? i * 31 % options_.vocab_size : Between(0, options_.vocab_size - 1);
      plan.request.mutable_token_ids()->add_ids(static_cast<int32_t>(token));
    }
    plan.request.mutable_sampling()->set_max_tokens(Between(1, options_.max_output_tokens));
    plan.request.mutable_sampling()->set_ignore_eos(true);
    plan.request.set_priority(static_cast<int32_t>(Between(-1, 1)));
    const auto moment = [this] { return static_cast<double>(Between(0, 10000)) / 1000; };
    // Whoever is still there when the storm is over leaves soon.
    const double left = std::chrono::duration<double>(end_time_ - Timer::Clock::now()).count() + moment() / 2;
    plan.cancel_after_seconds = OneIn(3) ? std::min(moment(), left) : left;
    if (OneIn(10)) plan.request.set_timeout_seconds(moment() + 0.001);
    if (OneIn(20)) plan.read_delay_seconds = 0.05;
    return plan;
  }

  void StartCall() {
    CallPlan plan;
    {
      const std::lock_guard lock(mutex_);
      if (is_over_) return;
      ++num_started_;
      plan = RandomPlan();
    }
    StormCall::Start(stub_.get(), &timer_, std::move(plan), [this](const CallEnd& end) { TakeEnd(end); });
  }

  void TakeEnd(const CallEnd& end) {
    // One that was refused waits, as a caller should; all start anew from the timer's thread.
    const bool was_refused = end.status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
    timer_.After(std::chrono::duration<double>(was_refused ? 0.2 : 0), [this] { StartCall(); });
    const std::lock_guard lock(mutex_);
    ++num_ended_;
    ++statuses_[std::to_string(end.status.error_code())];
    num_tokens_ += end.num_tokens;
    if (!end.fault.empty()) ++faults_[end.fault];
    if (!IsExpected(end.status)) ++faults_[end.status.error_message()];
    changed_.notify_all();
  }

  const StormOptions options_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Generation::Stub> stub_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937 random_;
  Timer::Clock::time_point end_time_;
  bool is_over_ = false;
  int64_t num_started_ = 0;
  int64_t num_ended_ = 0;
  int64_t num_tokens_ = 0;
  std::map<std::string, int64_t> statuses_;  // by code
  std::map<std::string, int64_t> faults_;
  Timer timer_;  // last: its thread ends before what it uses
};

int Main(int argc, char** argv) {
  CLI::App app("A storm of generation calls on a server; prints what came of them as JSON.");
  StormOptions options;
  app.add_option("--address", options.address, "HOST:PORT")->required();
  app.add_option("--seconds", options.seconds, "How long calls are started");
  app.add_option("--load", options.load, "Tokens wanted at once, by those that the cache holds");
  app.add_option("--max-prompt-tokens", options.max_prompt_tokens, "Of a call; lengths are uniform");
  app.add_option("--max-output-tokens", options.max_output_tokens, "Of a call; lengths are uniform");
  app.add_option("--vocab-size", options.vocab_size, "Prompts are of tokens below it");
  app.add_option("--seed", options.seed, "Of what is random");
  app.add_option("--hang-seconds", options.hang_seconds, "After the end, until a call without status is a fault");
  bool only_stats = false;
  app.add_flag("--stats", only_stats, "Send nothing; print the cache's figures as JSON");
  CLI11_PARSE(app, argc, argv);
  if (only_stats) return PrintStats(options.address);
  return Storm(options).Run();
}

}  // namespace
}  // namespace quire::testing

int main(int argc, char** argv) { return quire::testing::Main(argc, argv); }
