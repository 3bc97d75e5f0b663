// The real model against logits of a float64 decoder over the same dequantized weights.

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "tests/engine/model/decoder_harness.h"
#include "tests/support/test_data.h"

namespace quire::testing {
namespace {

struct GoldenBounds {
  double logit;
  double logprob;
  double margin;  // greedy ids must agree up to the first recorded margin below it
  // How many of all prompts' tokens may miss the log-probability bound, and by how much. Improbable tokens feel the
  // rounding of weights most: an independent f32 decoder over weights rounded to bf16 misses 0.15 too.
  double prompt_outliers_ratio = 0;
  double outlier_logprob = 0;
};

nlohmann::json Goldens() {
  std::ifstream file(RequireTestData("goldens/smollm2-135m-instruct-q4_1.json"));
  return nlohmann::json::parse(file);
}

double LogSumExp(const std::vector<float>& logits) {
  const double max = *std::max_element(logits.begin(), logits.end());
  double sum = 0;
  for (const float logit : logits) sum += std::exp(logit - max);
  return max + std::log(sum);
}

TokenId ArgMax(const std::vector<float>& logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

// Prompt and recorded answer in one pass: every row is compared, so that an early stop can't hide an error.
// Returns how many prompt tokens miss the log-probability bound.
int64_t CheckTeacherForced(DecoderHarness& decoder, const nlohmann::json& golden, const GoldenBounds& bounds) {
  auto tokens = golden["ids"].get<std::vector<TokenId>>();
  const size_t num_prompt = tokens.size();
  const auto greedy = golden["greedy"].get<std::vector<TokenId>>();
  tokens.insert(tokens.end(), greedy.begin(), greedy.end() - 1);
  decoder.Reset(0);
  const auto logits = decoder.Forward({{0, tokens}});
  REQUIRE(logits.size() == num_prompt + greedy.size() - 1);

  double worst_prompt_logprob = 0;
  int64_t num_outliers = 0;
  const auto& prompt_logprobs = golden["prompt_logprobs"];
  REQUIRE(prompt_logprobs.size() == num_prompt - 1);
  for (size_t i = 0; i + 1 < num_prompt; ++i) {
    const double logprob = logits[i][tokens[i + 1]] - LogSumExp(logits[i]);
    const double error = std::abs(logprob - prompt_logprobs[i].get<double>());
    worst_prompt_logprob = std::max(worst_prompt_logprob, error);
    if (!(error <= bounds.logprob)) ++num_outliers;
  }
  double worst_logprob = 0;
  for (const auto& [token, recorded] : golden["top10"].get<std::vector<std::pair<TokenId, double>>>()) {
    const auto& row = logits[num_prompt - 1];
    worst_logprob = std::max(worst_logprob, std::abs(row[token] - LogSumExp(row) - recorded));
  }
  double worst_logit = 0;
  REQUIRE(golden["steps_top5"].size() == greedy.size());
  for (size_t step = 0; step < greedy.size(); ++step) {
    for (const auto& [token, recorded] : golden["steps_top5"][step].get<std::vector<std::pair<TokenId, double>>>()) {
      worst_logit = std::max(worst_logit, std::abs(logits[num_prompt - 1 + step][token] - recorded));
    }
  }
  INFO("prompt " << golden["name"] << ": worst error of a logit " << worst_logit << ", of a log-prob " << worst_logprob
                 << ", of a prompt token's log-prob " << worst_prompt_logprob << ", prompt outliers " << num_outliers);
  CHECK(worst_logit <= bounds.logit);
  CHECK(worst_logprob <= bounds.logprob);
  CHECK(worst_prompt_logprob <= std::max(bounds.logprob, bounds.outlier_logprob));
  return num_outliers;
}

// Token by token through the cache, on its own output.
void CheckFreeRunning(DecoderHarness& decoder, const nlohmann::json& golden, const GoldenBounds& bounds) {
  const auto greedy = golden["greedy"].get<std::vector<TokenId>>();
  const auto margins = golden["margins"].get<std::vector<double>>();
  decoder.Reset(0);
  auto logits = decoder.Forward({{0, golden["ids"].get<std::vector<TokenId>>()}}).back();
  for (size_t step = 0; step < greedy.size() && margins[step] >= bounds.margin; ++step) {
    INFO("prompt " << golden["name"] << ", step " << step << ", margin " << margins[step]);
    REQUIRE(ArgMax(logits) == greedy[step]);
    logits = decoder.Forward({{0, {greedy[step]}}}).back();
  }
}

void CheckGoldens(const HarnessOptions& options, const GoldenBounds& bounds) {
  const auto goldens = Goldens();
  REQUIRE(goldens.size() == 7);
  DecoderHarness decoder(RequireModel().string(), options);
  int64_t num_prompt_tokens = 0;
  int64_t num_outliers = 0;
  for (const auto& golden : goldens) {
    num_prompt_tokens += static_cast<int64_t>(golden["ids"].size());
    num_outliers += CheckTeacherForced(decoder, golden, bounds);
    CheckFreeRunning(decoder, golden, bounds);
  }
  INFO(num_outliers << " of " << num_prompt_tokens << " prompt tokens miss the log-prob bound");
  CHECK(static_cast<double>(num_outliers) <= bounds.prompt_outliers_ratio * static_cast<double>(num_prompt_tokens));
}

constexpr GoldenBounds kF32Bounds = {.logit = 1e-3, .logprob = 1e-3, .margin = 0.002};
constexpr GoldenBounds kBf16CacheBounds = {.logit = 0.3, .logprob = 0.15, .margin = 0.25};
constexpr GoldenBounds kBf16WeightBounds = {
    .logit = 0.3, .logprob = 0.15, .margin = 0.25, .prompt_outliers_ratio = 0.02, .outlier_logprob = 0.4};
// Activations are rounded to 8 bits too, as often as weights and independently of them: sqrt(2) times the error. The
// greatest error of so few tokens is a matter of chance: equally exact orders of sums and exponentials in attention
// give 0.25 to 0.36 of a logit and 0.38 to 0.57 of a prompt token's log-prob.
constexpr GoldenBounds kBf16ComputeBounds = {
    .logit = 0.43, .logprob = 0.15, .margin = 0.25, .prompt_outliers_ratio = 0.02, .outlier_logprob = 0.57};

}  // namespace

TEST_CASE("f32 weights and cache reproduce the goldens", "[model]") { CheckGoldens({}, kF32Bounds); }

TEST_CASE("a bf16 cache reproduces the goldens", "[model]") {
  CheckGoldens({.kv_type = DType::kBF16}, kBf16CacheBounds);
}

TEST_CASE("bf16 weights and cache computed in f32 reproduce the goldens", "[model]") {
  CheckGoldens({.weight_type = WeightType::kBF16, .kv_type = DType::kBF16}, kBf16WeightBounds);
}

TEST_CASE("bf16 weights and cache computed in bf16 reproduce the goldens", "[model]") {
  const LinearKernels kernels({.out_features = 32, .in_features = 64, .weight_type = WeightType::kBF16});
  if (!kernels.Supports(DType::kBF16)) SKIP("this processor has no bf16 matmul kernels");
  CheckGoldens({.weight_type = WeightType::kBF16, .compute_type = "bf16", .kv_type = DType::kBF16}, kBf16ComputeBounds);
}

}  // namespace quire::testing
