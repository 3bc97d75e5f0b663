// The whole engine over a model that computes: what else runs, how prompts are cut and whether blocks run out must not
// change a request's tokens. In f32, greedy: equal in every token.

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/ops/linear_kernels.h"
#include "engine/runtime/engine_builder.h"
#include "tests/support/fake_engine.h"
#include "tests/support/temp_dir.h"
#include "tests/support/test_data.h"
#include "tests/support/tiny_model.h"

namespace quire::testing {
namespace {

struct Prompt {
  std::vector<TokenId> token_ids;
  int64_t max_tokens;
};

// A token with the log-probability it was chosen at, which feels every rounding that the token itself may hide.
struct Token {
  TokenId id;
  float logprob;
  bool operator==(const Token&) const = default;
};

using Outputs = std::vector<std::vector<Token>>;

EngineConfig F32Config() {
  EngineConfig config;
  config.weight_type = "f32";
  config.kv_cache_dtype = "f32";
  config.max_model_len = 256;
  config.max_num_seqs = 32;
  config.enable_prefix_caching = false;  // a second run must compute what the first one did
  config.kv_cache_memory_bytes = int64_t{768} << 20;
  return config;
}

class RunningEngine {
 public:
  RunningEngine(const std::string& model_path, const EngineConfig& config) {
    auto checkpoint = OpenCheckpoint(model_path);
    REQUIRE(checkpoint.ok());
    auto built = BuildEngine(**checkpoint, config, &clock_);
    INFO(built.status().ToString());
    REQUIRE(built.ok());
    built_ = *std::move(built);
  }

  EngineLoop& loop() { return *built_.loop; }
  const EngineInfo& info() const { return built_.info; }
  const MemoryPlan& memory() const { return built_.memory; }

  std::shared_ptr<RecordingSink> Start(const Prompt& prompt) {
    GenerationRequest request;
    request.prompt_token_ids = prompt.token_ids;
    request.sampling.temperature = 0;
    request.sampling.ignore_eos = true;
    request.sampling.max_tokens = prompt.max_tokens;
    request.sampling.num_logprobs = 0;
    request.arrival_time = clock_.Now();
    const auto sink = std::make_shared<RecordingSink>();
    request.sink = sink;
    REQUIRE(loop().Submit(std::move(request)).ok());
    return sink;
  }

  Outputs RunTogether(const std::vector<Prompt>& prompts) {
    std::vector<std::shared_ptr<RecordingSink>> sinks;
    for (const Prompt& prompt : prompts) sinks.push_back(Start(prompt));
    Outputs outputs;
    for (const auto& sink : sinks) {
      sink->WaitForFinish();
      CHECK(sink->result().status.ok());
      std::vector<Token>& tokens = outputs.emplace_back();
      for (const OutputToken& token : sink->tokens()) {
        tokens.push_back({token.token_id, token.logprobs.value().chosen.logprob});
      }
    }
    return outputs;
  }

  Outputs RunOneByOne(const std::vector<Prompt>& prompts) {
    Outputs outputs;
    for (const Prompt& prompt : prompts) outputs.push_back(RunTogether({prompt}).front());
    return outputs;
  }

 private:
  SteadyClock clock_;
  BuiltEngine built_;
};

std::vector<Prompt> RandomPrompts(int count, int64_t vocab_size, int64_t max_prompt_tokens, int64_t max_output_tokens) {
  std::mt19937_64 random(17);
  std::vector<Prompt> prompts(count);
  for (Prompt& prompt : prompts) {
    const auto length = 1 + random() % static_cast<uint64_t>(max_prompt_tokens);
    for (uint64_t i = 0; i < length; ++i) prompt.token_ids.push_back(static_cast<TokenId>(random() % vocab_size));
    prompt.max_tokens = 1 + static_cast<int64_t>(random() % static_cast<uint64_t>(max_output_tokens));
  }
  return prompts;
}

void CheckBatchedEqualsAlone(const std::string& model_path) {
  RunningEngine engine(model_path, F32Config());
  const auto prompts = RandomPrompts(32, engine.info().vocab_size, 150, 30);
  const Outputs alone = engine.RunOneByOne(prompts);
  for (size_t i = 0; i < prompts.size(); ++i) {
    CHECK(alone[i].size() == static_cast<size_t>(prompts[i].max_tokens));
  }
  CHECK(engine.RunTogether(prompts) == alone);
  CHECK(engine.loop().GetStats(false).cache.num_used_blocks == 0);
}

void CheckPreemptedEqualsAlone(const std::string& model_path) {
  EngineConfig config = F32Config();
  RunningEngine roomy(model_path, config);
  const auto prompts = RandomPrompts(32, roomy.info().vocab_size, 60, 100);
  const Outputs alone = roomy.RunOneByOne(prompts);
  config.kv_cache_memory_bytes = 40 * roomy.memory().bytes_per_block;
  RunningEngine tight(model_path, config);
  CHECK(tight.RunTogether(prompts) == alone);
  const EngineStats stats = tight.loop().GetStats(false);
  CHECK(stats.num_preemptions > 0);
  CHECK(stats.cache.num_used_blocks == 0);
}

void CheckChunkedEqualsWhole(const std::string& model_path) {
  Outputs outputs[3];
  int index = 0;
  for (const int64_t budget : {512, 64, 16}) {
    EngineConfig config = F32Config();
    config.max_num_batched_tokens = budget;
    config.max_num_seqs = 16;
    RunningEngine engine(model_path, config);
    outputs[index++] = engine.RunTogether(RandomPrompts(16, engine.info().vocab_size, 200, 16));
  }
  CHECK(outputs[1] == outputs[0]);
  CHECK(outputs[2] == outputs[0]);
}

void CheckHitEqualsCold(const std::string& model_path) {
  EngineConfig config = F32Config();
  RunningEngine cold(model_path, config);
  std::vector<Prompt> prompts = RandomPrompts(16, cold.info().vocab_size, 40, 30);
  const Prompt shared = RandomPrompts(64, cold.info().vocab_size, 150, 1).back();
  for (Prompt& prompt : prompts) {
    prompt.token_ids.insert(prompt.token_ids.begin(), shared.token_ids.begin(), shared.token_ids.end());
  }
  const Outputs expected = cold.RunTogether(prompts);
  config.enable_prefix_caching = true;
  RunningEngine warm(model_path, config);
  CHECK(warm.RunOneByOne(prompts) == expected);  // the shared beginning is found
  CHECK(warm.RunTogether(prompts) == expected);  // the own ends are found too
  const KvCacheUsage usage = warm.loop().GetStats(false).cache;
  CHECK(usage.num_prefix_hit_tokens > usage.num_prefix_query_tokens / 2);
  CHECK(usage.num_used_blocks == 0);
}

// Fifty requests alone, and again in batches of random sizes and members.
void CheckDeterministic(const std::string& model_path, const std::string& weight_type, const std::string& compute_type,
                        int64_t max_prompt_tokens) {
  EngineConfig config = F32Config();
  config.weight_type = weight_type;
  config.compute_type = compute_type;
  config.kv_cache_dtype = "auto";
  config.deterministic = true;
  RunningEngine engine(model_path, config);
  auto prompts = RandomPrompts(50, engine.info().vocab_size, max_prompt_tokens, 12);
  std::mt19937_64 random(5);
  const auto together = [&] {
    Outputs outputs;
    for (size_t begin = 0; begin < prompts.size();) {
      const size_t end = std::min(prompts.size(), begin + 1 + random() % 24);
      const Outputs batch = engine.RunTogether({prompts.begin() + begin, prompts.begin() + end});
      outputs.insert(outputs.end(), batch.begin(), batch.end());
      begin = end;
    }
    return outputs;
  };
  INFO("weights " << weight_type << ", computed in " << compute_type << ": " << engine.info().compute_type_reason);
  for (int round = 0; round < 2; ++round) {
    std::shuffle(prompts.begin(), prompts.end(), random);
    CHECK(together() == engine.RunOneByOne(prompts));
  }
}

bool HasBf16Kernels() {
  return LinearKernels({.out_features = 32, .in_features = 64, .weight_type = WeightType::kBF16})
      .Supports(DType::kBF16);
}

std::string TinyModel(const TempDir& dir) { return WriteTinyModel({}, dir.File("tiny.gguf")); }

}  // namespace

TEST_CASE("tiny model: 32 requests together equal each alone") {
  const TempDir dir;
  CheckBatchedEqualsAlone(TinyModel(dir));
}
TEST_CASE("tiny model: preempted requests equal each alone") {
  const TempDir dir;
  CheckPreemptedEqualsAlone(TinyModel(dir));
}
TEST_CASE("tiny model: chunked prompts equal whole ones") {
  const TempDir dir;
  CheckChunkedEqualsWhole(TinyModel(dir));
}
TEST_CASE("tiny model: prompts found in the prefix cache equal cold ones") {
  const TempDir dir;
  CheckHitEqualsCold(TinyModel(dir));
}
TEST_CASE("real model: prompts found in the prefix cache equal cold ones", "[model]") {
  CheckHitEqualsCold(RequireModel().string());
}
TEST_CASE("real model: 32 requests together equal each alone", "[model]") {
  CheckBatchedEqualsAlone(RequireModel().string());
}
TEST_CASE("real model: preempted requests equal each alone", "[model]") {
  CheckPreemptedEqualsAlone(RequireModel().string());
}
TEST_CASE("real model: chunked prompts equal whole ones", "[model]") {
  CheckChunkedEqualsWhole(RequireModel().string());
}

TEST_CASE("deterministic: a request has the same tokens alone and in any batch, in every compute type") {
  const TempDir dir;
  const std::string path = WriteTinyModel({.storage_type = StorageType::kQ4_1}, dir.File("tiny.gguf"));
  const auto [weight_type, compute_type] = GENERATE(table<std::string, std::string>({{"auto", "auto"},
                                                                                     {"auto", "int8"},
                                                                                     {"auto", "f32"},
                                                                                     {"auto", "bf16"},
                                                                                     {"int8", "auto"},
                                                                                     {"bf16", "auto"},
                                                                                     {"bf16", "f32"},
                                                                                     {"bf16", "bf16"},
                                                                                     {"f32", "auto"}}));
  if (compute_type == "bf16" && !HasBf16Kernels()) SKIP("this processor has no bf16 matmul kernels");
  CheckDeterministic(path, weight_type, compute_type, 100);
}
TEST_CASE("real model, deterministic: a request has the same tokens alone and in any batch", "[model]") {
  const std::string compute_type = GENERATE("auto", "int8", "bf16");
  if (compute_type == "bf16" && !HasBf16Kernels()) SKIP("this processor has no bf16 matmul kernels");
  CheckDeterministic(RequireModel().string(), "auto", compute_type, 60);
}

TEST_CASE("a budget too small for the model is refused with what would suffice") {
  const TempDir dir;
  const auto checkpoint = OpenCheckpoint(TinyModel(dir));
  EngineConfig config;
  config.memory_budget_bytes = 1 << 20;
  const SteadyClock clock;
  const auto built = BuildEngine(**checkpoint, config, &clock);
  REQUIRE(built.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(built.status().message().find("what would work is at least") != absl::string_view::npos);
}

}  // namespace quire::testing
