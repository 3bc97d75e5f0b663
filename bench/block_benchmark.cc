// Operations on blocks, over pools of very different sizes: their time must not depend on the size.

#include <benchmark/benchmark.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "bench/manual_clock.h"
#include "engine/base/check.h"
#include "engine/kv_cache/block_pool.h"
#include "engine/kv_cache/kv_cache_manager.h"

namespace quire {
namespace {

constexpr int64_t kBlockSize = 16;
constexpr int64_t kBlocksPerPrompt = 32;

std::vector<TokenId> PromptOf(int64_t number) {
  std::vector<TokenId> prompt;
  for (int64_t i = 0; i < kBlockSize * kBlocksPerPrompt; ++i) {
    prompt.push_back(static_cast<TokenId>((number * 104729 + i * 31) % 50000));
  }
  return prompt;
}

// A manager whose blocks are all cached: each new content evicts, each old one is found.
class FullCache {
 public:
  explicit FullCache(int64_t num_blocks)
      : num_prompts_(num_blocks / kBlocksPerPrompt),
        cache_({.num_blocks = num_blocks, .block_size = kBlockSize}, &clock_) {
    for (int64_t number = 0; number < num_prompts_; ++number) {
      Admit(PromptOf(number));
      Release(PromptOf(number));
    }
  }

  int64_t Admit(const std::vector<TokenId>& prompt) {
    const auto num_cached = cache_.Admit({.request = kRequest,
                                          .token_ids = prompt,
                                          .max_num_tokens = static_cast<int64_t>(prompt.size()),
                                          .cache_namespace = namespace_,
                                          .max_cached_tokens = static_cast<int64_t>(prompt.size())});
    QUIRE_CHECK(num_cached.has_value());
    return *num_cached;
  }

  void Release(const std::vector<TokenId>& prompt) {
    cache_.CacheComputed(kRequest, prompt, static_cast<int64_t>(prompt.size()));
    cache_.Free(kRequest);
  }

  int64_t num_prompts() const { return num_prompts_; }

 private:
  static constexpr RequestId kRequest{1};

  int64_t num_prompts_;
  ManualClock clock_;
  std::shared_ptr<const std::string> namespace_ = std::make_shared<const std::string>("tenant");
  KvCacheManager cache_;
};

void CountBlocks(benchmark::State& state, int64_t blocks_per_iteration) {
  state.counters["per_block"] = benchmark::Counter(static_cast<double>(state.iterations() * blocks_per_iteration),
                                                   benchmark::Counter::kIsRate | benchmark::Counter::kInvert);
}

void AllocateAndFreeBlocks(benchmark::State& state) {
  BlockPool pool(state.range(0));
  std::vector<BlockId> ids;
  for (auto _ : state) {
    ids.clear();
    benchmark::DoNotOptimize(pool.Allocate(kBlocksPerPrompt, &ids));
    for (const BlockId id : ids) pool.DropReference(id, Reuse::kLast);
  }
  CountBlocks(state, kBlocksPerPrompt);
}

// A prompt that is cached: looked up by hash, compared, shared, given back.
void FindPrefix(benchmark::State& state) {
  FullCache cache(state.range(0));
  int64_t number = 0;
  int64_t num_found = 0;
  std::vector<std::vector<TokenId>> prompts;
  for (int64_t i = 0; i < 32; ++i) prompts.push_back(PromptOf(i * cache.num_prompts() / 32));
  for (auto _ : state) {
    const std::vector<TokenId>& prompt = prompts[static_cast<size_t>(number++ % 32)];
    num_found += cache.Admit(prompt);
    cache.Release(prompt);
  }
  // All but the last block, of which a token must be left to compute.
  QUIRE_CHECK_EQ(num_found, state.iterations() * (kBlocksPerPrompt - 1) * kBlockSize);
  CountBlocks(state, kBlocksPerPrompt);
}

// A prompt that is new, in a pool full of others: not found, evicting, made findable, given back.
void EvictAndCache(benchmark::State& state) {
  FullCache cache(state.range(0));
  std::vector<TokenId> prompt = PromptOf(0);
  TokenId next_token = 50000;
  for (auto _ : state) {
    prompt[0] = next_token++;
    QUIRE_CHECK_EQ(cache.Admit(prompt), 0);
    cache.Release(prompt);
  }
  CountBlocks(state, kBlocksPerPrompt);
}

void PoolSizes(benchmark::internal::Benchmark* benchmark) {
  benchmark->ArgName("blocks")->Arg(1 << 10)->Arg(1 << 15)->Arg(1 << 20);
}

BENCHMARK(AllocateAndFreeBlocks)->Apply(PoolSizes);
BENCHMARK(FindPrefix)->Apply(PoolSizes);
BENCHMARK(EvictAndCache)->Apply(PoolSizes);

}  // namespace
}  // namespace quire

BENCHMARK_MAIN();
