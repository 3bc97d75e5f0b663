#include "bench/text_scorer.h"

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <memory>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace quire::testing {
namespace {

EngineConfig F32Config() {
  EngineConfig config;
  config.weight_type = "f32";
  config.compute_type = "f32";
  config.kv_cache_dtype = "f32";
  config.num_threads = 2;
  return config;
}

std::vector<TokenId> SomeTokens(int64_t count) {
  std::vector<TokenId> tokens;
  for (int64_t i = 0; i < count; ++i) tokens.push_back(static_cast<TokenId>(kTinyFirstByte + (i * 37 + 11) % 250));
  return tokens;
}

struct TinyCheckpoint {
  TempDir dir;
  std::unique_ptr<Checkpoint> checkpoint =
      *OpenCheckpoint(WriteTinyModel({.context_length = 64}, (dir.path() / "tiny.gguf").string()));
};

// All scored rows, [num_scored * vocab_size].
std::vector<float> ScoreAll(const Checkpoint& checkpoint, const WindowPlan& plan, std::span<const TokenId> window) {
  auto scorer = TextScorer::Load(checkpoint, F32Config(), plan);
  REQUIRE(scorer.ok());
  std::vector<float> all;
  int64_t next_row = 0;
  scorer->Score(window, [&](int64_t first_row, MatrixView<float> logits) {
    CHECK(first_row == next_row);
    next_row += logits.rows;
    for (int64_t row = 0; row < logits.rows; ++row) {
      all.insert(all.end(), logits.row(row).begin(), logits.row(row).end());
    }
  });
  CHECK(next_row == plan.num_scored());
  return all;
}

}  // namespace

TEST_CASE("TextScorer scores the same rows however the window is stepped", "[bench]") {
  const TinyCheckpoint tiny;
  const std::vector<TokenId> window = SomeTokens(40);
  const auto whole = ScoreAll(*tiny.checkpoint, {.window_tokens = 40, .step_tokens = 64}, window);
  REQUIRE(whole.size() == 19U * 320U);
  for (const int64_t step_tokens : {1, 7, 20, 40}) {
    INFO("step of " << step_tokens);
    const auto stepped = ScoreAll(*tiny.checkpoint, {.window_tokens = 40, .step_tokens = step_tokens}, window);
    REQUIRE(stepped.size() == whole.size());
    float worst = 0;
    for (size_t i = 0; i < whole.size(); ++i) worst = std::max(worst, std::abs(whole[i] - stepped[i]));
    CHECK(worst < 1e-4F);
  }
}

TEST_CASE("TextScorer's first row follows the first half of the window", "[bench]") {
  const TinyCheckpoint tiny;
  const std::vector<TokenId> window = SomeTokens(32);
  const WindowPlan plan = {.window_tokens = 32, .step_tokens = 32};
  const auto before = ScoreAll(*tiny.checkpoint, plan, window);
  std::vector<TokenId> changed = window;
  changed[17] = kTinyFirstByte;  // the second scored position: only rows from 1 on can tell
  const auto after = ScoreAll(*tiny.checkpoint, plan, changed);
  const auto row = [](const std::vector<float>& rows, int64_t index) {
    return std::vector<float>(rows.begin() + index * 320, rows.begin() + (index + 1) * 320);
  };
  CHECK(row(before, 0) == row(after, 0));
  CHECK(row(before, 1) != row(after, 1));
}

TEST_CASE("TextScorer refuses windows longer than the context, and unknown types", "[bench]") {
  const TinyCheckpoint tiny;
  const auto too_long = TextScorer::Load(*tiny.checkpoint, F32Config(), {.window_tokens = 65, .step_tokens = 16});
  REQUIRE(!too_long.ok());
  CHECK(too_long.status().message() == "window: got 65, expected at most the model's context, 64 tokens");
  EngineConfig config = F32Config();
  config.weight_type = "int3";
  const auto unknown = TextScorer::Load(*tiny.checkpoint, config, {.window_tokens = 32, .step_tokens = 16});
  REQUIRE(!unknown.ok());
  CHECK(unknown.status().message().starts_with("weight_type: got 'int3'"));
}

}  // namespace quire::testing
