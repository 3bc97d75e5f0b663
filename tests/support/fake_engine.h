#pragma once

#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "engine/runtime/engine.h"
#include "tests/support/fake_model_runner.h"

namespace quire::testing {

// Keeps what a request was sent, and counts its ends. Thread-safe, so that tests of threads may look at any time.
class RecordingSink : public TokenSink {
 public:
  void OnPromptLogprobs(std::vector<PositionLogprobs> logprobs) override {
    const std::lock_guard lock(mutex_);
    for (PositionLogprobs& position : logprobs) prompt_logprobs_.push_back(std::move(position));
  }
  void OnTokens(std::vector<OutputToken> tokens) override {
    const std::lock_guard lock(mutex_);
    for (OutputToken& token : tokens) tokens_.push_back(std::move(token));
    if (num_finishes_ > 0) late_call_ = true;
    changed_.notify_all();
  }
  void OnFinish(const GenerationResult& result) override {
    const std::lock_guard lock(mutex_);
    ++num_finishes_;
    result_ = result;
    changed_.notify_all();
  }

  std::vector<TokenId> token_ids() const {
    const std::lock_guard lock(mutex_);
    std::vector<TokenId> ids;
    for (const OutputToken& token : tokens_) ids.push_back(token.token_id);
    return ids;
  }
  std::vector<OutputToken> tokens() const {
    const std::lock_guard lock(mutex_);
    return tokens_;
  }
  std::vector<PositionLogprobs> prompt_logprobs() const {
    const std::lock_guard lock(mutex_);
    return prompt_logprobs_;
  }
  int num_finishes() const {
    const std::lock_guard lock(mutex_);
    return num_finishes_;
  }
  // Of a request that has ended.
  GenerationResult result() const {
    const std::lock_guard lock(mutex_);
    return result_;
  }
  // A call came after OnFinish.
  bool late_call() const {
    const std::lock_guard lock(mutex_);
    return late_call_;
  }
  void WaitForFinish() const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return num_finishes_ > 0; });
  }
  void WaitForTokens(size_t num_tokens) const {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return tokens_.size() >= num_tokens || num_finishes_ > 0; });
  }

 private:
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  std::vector<PositionLogprobs> prompt_logprobs_;
  std::vector<OutputToken> tokens_;
  GenerationResult result_;
  int num_finishes_ = 0;
  bool late_call_ = false;
};

struct FakeEngineConfig {
  int64_t vocab_size = 97;
  int64_t num_blocks = 512;
  int64_t block_size = 4;
  int64_t max_model_len = 256;
  int64_t max_num_batched_tokens = 64;
  int64_t max_num_seqs = 64;
  int64_t num_threads = 1;
  std::vector<TokenId> end_of_generation_ids;
};

// An engine over a FakeModelRunner; `runner` stays the engine's.
struct FakeEngine {
  std::unique_ptr<Engine> engine;
  FakeModelRunner* runner = nullptr;
};

inline FakeEngine MakeFakeEngine(const FakeEngineConfig& config, const Clock* clock) {
  EngineDependencies dependencies;
  dependencies.clock = clock;
  dependencies.kv_cache = std::make_unique<KvCacheManager>(
      KvCacheConfig{.num_blocks = config.num_blocks, .block_size = config.block_size}, clock);
  SchedulerConfig scheduler_config;
  scheduler_config.max_num_batched_tokens = config.max_num_batched_tokens;
  scheduler_config.max_num_seqs = config.max_num_seqs;
  scheduler_config.max_model_len = config.max_model_len;
  scheduler_config.bytes_per_block = 1000;
  scheduler_config.max_num_logits_rows = config.max_num_seqs;
  dependencies.scheduler = std::make_unique<Scheduler>(scheduler_config, dependencies.kv_cache.get(), clock);
  auto runner = std::make_unique<FakeModelRunner>(FakeModelRunner::Config{.vocab_size = config.vocab_size,
                                                                          .num_blocks = config.num_blocks,
                                                                          .block_size = config.block_size,
                                                                          .num_threads = config.num_threads});
  FakeEngine made;
  made.runner = runner.get();
  dependencies.model_runner = std::move(runner);
  dependencies.end_of_generation_ids = config.end_of_generation_ids;
  dependencies.seed = 1;
  made.engine = std::make_unique<Engine>(std::move(dependencies));
  return made;
}

// Greedy, without an end of its own.
inline GenerationRequest GreedyRequest(std::vector<TokenId> prompt, std::optional<int64_t> max_tokens,
                                       std::shared_ptr<TokenSink> sink, const Clock& clock) {
  GenerationRequest request;
  request.label = "test";
  request.prompt_token_ids = std::move(prompt);
  request.sampling.temperature = 0.0F;
  request.sampling.max_tokens = max_tokens;
  request.arrival_time = clock.Now();
  request.sink = std::move(sink);
  return request;
}

}  // namespace quire::testing
