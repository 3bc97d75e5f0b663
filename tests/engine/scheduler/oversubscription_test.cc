// Twice as many requests want blocks at once as there are: what is computed twice stays small.
#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <random>

#include "tests/engine/scheduler/scheduler_fixture.h"

namespace quire {
namespace {

using testing::SchedulerFixture;

constexpr int64_t kBlockSize = 16;
constexpr int64_t kNumSeqs = 32;
constexpr int64_t kMeanPromptTokens = 128;
constexpr int64_t kMeanOutputTokens = 192;
constexpr int64_t kBlocksAtEnd = (kMeanPromptTokens + kMeanOutputTokens) / kBlockSize;

struct Work {
  int64_t num_useful_tokens = 0;
  int64_t num_recomputed_tokens = 0;
  int64_t num_preemptions = 0;
};

// Runs requests of random lengths whose ends nobody knows: they ask for much more output than they will make.
Work RunClosedLoop(int64_t num_blocks, bool enable_prefix_caching, uint32_t seed) {
  std::mt19937 random(seed);
  SchedulerFixture fixture(
      {.max_num_batched_tokens = 256, .max_num_seqs = kNumSeqs, .max_model_len = 2048, .max_num_logits_rows = kNumSeqs},
      num_blocks, kBlockSize, enable_prefix_caching);
  std::map<RequestId, int64_t> num_output_tokens;  // after which each will end
  const auto add = [&] {
    const int64_t num_prompt_tokens = 1 + static_cast<int64_t>(random() % (2 * kMeanPromptTokens));
    const RequestId id = fixture.Add({.num_prompt_tokens = num_prompt_tokens, .max_tokens = 1024});
    num_output_tokens[id] = 1 + static_cast<int64_t>(random() % (2 * kMeanOutputTokens));
  };
  Work work;
  for (int64_t i = 0; i < 2 * kNumSeqs; ++i) add();
  while (work.num_useful_tokens < 100 * kNumSeqs * kMeanOutputTokens / 10) {
    fixture.Step();
    std::vector<RequestId> complete;
    for (const Request* request : fixture.scheduler.Requests()) {
      if (request->num_output_tokens() >= num_output_tokens[request->id]) complete.push_back(request->id);
    }
    for (const RequestId id : complete) {
      work.num_useful_tokens += fixture.Remove(id)->num_tokens();
      add();
    }
  }
  work.num_recomputed_tokens = fixture.scheduler.num_recomputed_tokens();
  work.num_preemptions = fixture.scheduler.num_preemptions();
  return work;
}

TEST_CASE("At twice the pool, recomputed tokens stay below a fifth of the useful ones") {
  for (const bool enable_prefix_caching : {false, true}) {
    for (const uint32_t seed : {1U, 2U, 3U}) {
      const Work work = RunClosedLoop(kNumSeqs * kBlocksAtEnd / 2, enable_prefix_caching, seed);
      INFO("prefix caching " << enable_prefix_caching << ", seed " << seed << ": " << work.num_preemptions
                             << " preemptions, " << work.num_recomputed_tokens << " tokens computed again, "
                             << work.num_useful_tokens << " useful");
      CHECK(work.num_preemptions > 0);
      CHECK(work.num_recomputed_tokens * 5 < work.num_useful_tokens);
    }
  }
}

}  // namespace
}  // namespace quire
