// The real model against logits of a float64 decoder over the same dequantized weights.

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <format>
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
  // Which values are the worst is a matter of chance, so the root mean square of all errors has a bound beside them.
  double rms_logit;
  double rms_logprob;
  // How large a share of logits and of prompt tokens' log-probabilities may miss the first two bounds.
  double outliers_ratio = 0;
};

// Errors of one kind over all prompts.
class Errors {
 public:
  explicit Errors(double bound) : bound_(bound) {}

  void Add(double error) {
    sum_of_squares_ += error * error;
    worst_ = std::max(worst_, std::abs(error));
    ++count_;
    if (!(std::abs(error) <= bound_)) ++num_outliers_;
  }
  double rms() const { return std::sqrt(sum_of_squares_ / static_cast<double>(count_)); }
  double outliers_ratio() const { return static_cast<double>(num_outliers_) / static_cast<double>(count_); }
  std::string Describe() const {
    return std::format("{} values, {} beyond {}, worst {:.6f}, root mean square {:.6f}", count_, num_outliers_, bound_,
                       worst_, rms());
  }

 private:
  double bound_;
  double sum_of_squares_ = 0;
  double worst_ = 0;
  int64_t count_ = 0;
  int64_t num_outliers_ = 0;
};

struct GoldenErrors {
  Errors logits;
  Errors logprobs;         // of the ten best after the prompt
  Errors prompt_logprobs;  // of the prompts' own tokens
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
void AddTeacherForced(DecoderHarness& decoder, const nlohmann::json& golden, GoldenErrors* errors) {
  auto tokens = golden["ids"].get<std::vector<TokenId>>();
  const size_t num_prompt = tokens.size();
  const auto greedy = golden["greedy"].get<std::vector<TokenId>>();
  tokens.insert(tokens.end(), greedy.begin(), greedy.end() - 1);
  decoder.Reset(0);
  const auto logits = decoder.Forward({{0, tokens}});
  REQUIRE(logits.size() == num_prompt + greedy.size() - 1);

  const auto& prompt_logprobs = golden["prompt_logprobs"];
  REQUIRE(prompt_logprobs.size() == num_prompt - 1);
  for (size_t i = 0; i + 1 < num_prompt; ++i) {
    errors->prompt_logprobs.Add(logits[i][tokens[i + 1]] - LogSumExp(logits[i]) - prompt_logprobs[i].get<double>());
  }
  for (const auto& [token, recorded] : golden["top10"].get<std::vector<std::pair<TokenId, double>>>()) {
    const auto& row = logits[num_prompt - 1];
    errors->logprobs.Add(row[token] - LogSumExp(row) - recorded);
  }
  REQUIRE(golden["steps_top5"].size() == greedy.size());
  for (size_t step = 0; step < greedy.size(); ++step) {
    for (const auto& [token, recorded] : golden["steps_top5"][step].get<std::vector<std::pair<TokenId, double>>>()) {
      errors->logits.Add(logits[num_prompt - 1 + step][token] - recorded);
    }
  }
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
  GoldenErrors errors = {Errors(bounds.logit), Errors(bounds.logprob), Errors(bounds.logprob)};
  for (const auto& golden : goldens) {
    AddTeacherForced(decoder, golden, &errors);
    CheckFreeRunning(decoder, golden, bounds);
  }
  INFO("logits: " << errors.logits.Describe());
  INFO("log-probs: " << errors.logprobs.Describe());
  INFO("prompt log-probs: " << errors.prompt_logprobs.Describe());
  CHECK(errors.logits.outliers_ratio() <= bounds.outliers_ratio);
  CHECK(errors.logprobs.outliers_ratio() == 0);
  CHECK(errors.prompt_logprobs.outliers_ratio() <= bounds.outliers_ratio);
  CHECK(errors.logits.rms() <= bounds.rms_logit);
  CHECK(errors.prompt_logprobs.rms() <= bounds.rms_logprob);
}

constexpr GoldenBounds kF32Bounds = {
    .logit = 1e-3, .logprob = 1e-3, .margin = 0.002, .rms_logit = 2e-4, .rms_logprob = 2e-4};
constexpr GoldenBounds kBf16Bounds = {
    .logit = 0.3, .logprob = 0.15, .margin = 0.25, .rms_logit = 0.045, .rms_logprob = 0.032};
// Inputs are rounded to 8 bits too, as often as weights and independently of them: sqrt(2) times the error, which puts
// a few of the most improbable tokens beyond the bounds.
constexpr GoldenBounds kBf16ComputeBounds = {
    .logit = 0.3, .logprob = 0.15, .margin = 0.25, .rms_logit = 0.064, .rms_logprob = 0.045, .outliers_ratio = 0.02};

}  // namespace

TEST_CASE("f32 weights and cache reproduce the goldens", "[model]") { CheckGoldens({}, kF32Bounds); }

TEST_CASE("a bf16 cache reproduces the goldens", "[model]") { CheckGoldens({.kv_type = DType::kBF16}, kBf16Bounds); }

TEST_CASE("bf16 weights and cache computed in f32 reproduce the goldens", "[model]") {
  CheckGoldens({.weight_type = WeightType::kBF16, .kv_type = DType::kBF16}, kBf16Bounds);
}

TEST_CASE("bf16 weights and cache computed in bf16 reproduce the goldens", "[model]") {
  const LinearKernels kernels({.out_features = 32, .in_features = 64, .weight_type = WeightType::kBF16});
  if (!kernels.Supports(DType::kBF16)) SKIP("this processor has no bf16 matmul kernels");
  CheckGoldens({.weight_type = WeightType::kBF16, .compute_type = "bf16", .kv_type = DType::kBF16}, kBf16ComputeBounds);
}

}  // namespace quire::testing
