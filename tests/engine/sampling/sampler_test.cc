#include "engine/sampling/sampler.h"

#include <cmath>
#include <limits>
#include <vector>

#include "catch2/catch_test_macros.hpp"
#include "engine/sampling/rng.h"

namespace quire {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

SamplingParams Greedy() {
  SamplingParams params;
  params.temperature = 0.0F;
  return params;
}

std::vector<float> RandomLogits(int64_t size, uint64_t seed) {
  std::vector<float> logits(size);
  for (int64_t i = 0; i < size; ++i) logits[i] = static_cast<float>(RandomUniform(seed, i) * 8.0 - 4.0);
  return logits;
}

// Draws for output positions [0, num_draws), and counts how often each token came.
std::vector<int> CountDraws(const SamplingParams& params, const std::vector<float>& logits, int num_draws,
                            const std::vector<TokenId>& tokens = {}) {
  Sampler sampler(params, 12345, logits.size());
  SamplingScratch scratch(logits.size());
  std::vector<int> counts(logits.size());
  for (int i = 0; i < num_draws; ++i) {
    const auto token = sampler.Sample(logits, tokens, i, nullptr, &scratch);
    REQUIRE(token.ok());
    ++counts[*token];
  }
  return counts;
}

// Pearson's statistic against exp(logit / temperature) over the tokens in `kept`; others must never come.
double ChiSquare(const std::vector<int>& counts, const std::vector<float>& logits, double temperature,
                 const std::vector<bool>& kept) {
  double total_weight = 0;
  int num_draws = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (kept[i]) total_weight += std::exp(logits[i] / temperature);
    num_draws += counts[i];
  }
  double sum = 0;
  for (size_t i = 0; i < logits.size(); ++i) {
    if (!kept[i]) {
      CHECK(counts[i] == 0);
      continue;
    }
    const double expected = num_draws * std::exp(logits[i] / temperature) / total_weight;
    sum += (counts[i] - expected) * (counts[i] - expected) / expected;
  }
  return sum;
}

class OnlyTokens : public TokenConstraint {
 public:
  explicit OnlyTokens(std::vector<TokenId> allowed) : allowed_(std::move(allowed)) {}
  void FillMask(std::span<uint32_t> mask) override {
    for (uint32_t& word : mask) word = 0;
    for (const TokenId token : allowed_) mask[token / 32] |= 1U << (token % 32);
  }
  void Accept(TokenId) override {}

 private:
  std::vector<TokenId> allowed_;
};

TEST_CASE("temperature 0 takes the largest logit, of equals the lowest id") {
  std::vector<float> logits(70, 0.0F);
  logits[40] = logits[60] = 3.0F;
  CHECK(CountDraws(Greedy(), logits, 5)[40] == 5);
}

TEST_CASE("frequencies follow the softmax at every temperature") {
  const std::vector<float> logits = {0.0F, 1.0F, 2.0F, -1.0F, 0.5F, 1.5F, -0.5F, 0.2F};
  for (const float temperature : {0.5F, 1.0F, 2.0F}) {
    SamplingParams params;
    params.temperature = temperature;
    const std::vector<int> counts = CountDraws(params, logits, 20000);
    // 7 degrees of freedom: 24.3 is passed once in a thousand streams.
    CHECK(ChiSquare(counts, logits, temperature, std::vector<bool>(8, true)) < 24.3);
  }
}

TEST_CASE("a flat vocabulary wider than a draw's block is drawn evenly over its whole width") {
  const std::vector<float> logits(1000, 0.0F);
  const std::vector<int> counts = CountDraws(SamplingParams(), logits, 50000);
  // 999 degrees of freedom: mean 999, standard deviation 44.7.
  CHECK(ChiSquare(counts, logits, 1.0, std::vector<bool>(1000, true)) < 999 + 3.3 * 44.7);
}

TEST_CASE("top_k keeps the k most probable and their proportions") {
  const std::vector<float> logits = {0.0F, 1.0F, 2.0F, -1.0F, 0.5F, 1.5F, -0.5F, 0.2F};
  SamplingParams params;
  params.top_k = 3;
  const std::vector<int> counts = CountDraws(params, logits, 20000);
  // 2 degrees of freedom.
  CHECK(ChiSquare(counts, logits, 1.0, {false, true, true, false, false, true, false, false}) < 13.8);
  params.top_k = 1;
  CHECK(CountDraws(params, logits, 100)[2] == 100);
  params.top_k = 1000;  // more than there are
  CHECK(ChiSquare(CountDraws(params, logits, 20000), logits, 1.0, std::vector<bool>(8, true)) < 24.3);
}

TEST_CASE("top_p keeps the smallest head that reaches it") {
  // Probabilities 0.5, 0.3, 0.15, 0.05.
  const std::vector<float> logits = {std::log(0.15F), std::log(0.5F), std::log(0.05F), std::log(0.3F)};
  SamplingParams params;
  params.top_p = 0.79F;
  CHECK(ChiSquare(CountDraws(params, logits, 20000), logits, 1.0, {false, true, false, true}) < 10.9);
  params.top_p = 0.81F;
  CHECK(ChiSquare(CountDraws(params, logits, 20000), logits, 1.0, {true, true, false, true}) < 13.8);
  params.top_p = 0.96F;
  CHECK(ChiSquare(CountDraws(params, logits, 20000), logits, 1.0, {true, true, true, true}) < 16.3);
  params.top_p = 1e-6F;
  CHECK(CountDraws(params, logits, 100)[1] == 100);
}

TEST_CASE("min_p drops what is less probable than its share of the best") {
  const std::vector<float> logits = {std::log(0.15F), std::log(0.5F), std::log(0.05F), std::log(0.3F)};
  SamplingParams params;
  params.min_p = 0.2F;  // at least 0.1
  CHECK(ChiSquare(CountDraws(params, logits, 20000), logits, 1.0, {true, true, false, true}) < 13.8);
  params.min_p = 1.0F;
  CHECK(CountDraws(params, logits, 100)[1] == 100);
}

TEST_CASE("top_p counts over what top_k left") {
  // Of 0.5 and 0.3 alone, the first is 0.625 of the mass.
  const std::vector<float> logits = {std::log(0.15F), std::log(0.5F), std::log(0.05F), std::log(0.3F)};
  SamplingParams params;
  params.top_k = 2;
  params.top_p = 0.6F;
  CHECK(CountDraws(params, logits, 200)[1] == 200);
  params.top_p = 0.65F;
  CHECK(ChiSquare(CountDraws(params, logits, 20000), logits, 1.0, {false, true, false, true}) < 10.9);
}

TEST_CASE("the repetition penalty divides positive and multiplies negative logits of seen tokens") {
  const std::vector<float> logits = {2.0F, 1.5F, -1.0F, 1.1F};
  SamplingParams params = Greedy();
  params.repetition_penalty = 1.5F;  // 2 -> 1.33, 1.5 -> 1
  CHECK(CountDraws(params, logits, 1, {})[0] == 1);
  CHECK(CountDraws(params, logits, 1, {0})[1] == 1);
  CHECK(CountDraws(params, logits, 1, {0, 1, 1, 1})[0] == 1);
  params.repetition_penalty = 2.0F;  // once, however often seen: 2 -> 1, 1.5 -> 0.75
  CHECK(CountDraws(params, logits, 1, {0, 0, 0, 1})[3] == 1);
  const std::vector<float> negative = {-1.0F, -1.2F};
  CHECK(CountDraws(params, negative, 1, {0})[1] == 1);
  params.repetition_penalty = 1e-30F;  // rewards beyond what a float holds
  CHECK(CountDraws(params, {3.0F, 1e10F}, 1, {1})[1] == 1);
}

TEST_CASE("tokens made since the last call are penalized too") {
  SamplingParams params = Greedy();
  params.repetition_penalty = 10.0F;
  const std::vector<float> logits = {5.0F, 4.0F, 3.0F};
  Sampler sampler(params, 0, 3);
  SamplingScratch scratch(3);
  std::vector<TokenId> tokens;
  for (int i = 0; i < 3; ++i) {
    tokens.push_back(*sampler.Sample(logits, tokens, i, nullptr, &scratch));
    CHECK(tokens.back() == i);
  }
}

TEST_CASE("a constraint's mask rules out tokens, greedy or drawn") {
  std::vector<float> logits = RandomLogits(100, 5);
  OnlyTokens constraint({3, 64, 99});
  SamplingScratch scratch(100);
  Sampler greedy(Greedy(), 0, 100);
  TokenId best = 3;
  for (const TokenId token : {64, 99}) best = logits[token] > logits[best] ? token : best;
  CHECK(*greedy.Sample(logits, {}, 0, &constraint, &scratch) == best);
  Sampler drawing(SamplingParams(), 1, 100);
  for (int i = 0; i < 200; ++i) {
    const TokenId token = *drawing.Sample(logits, {}, i, &constraint, &scratch);
    CHECK((token == 3 || token == 64 || token == 99));
  }
  OnlyTokens nothing({});
  CHECK(drawing.Sample(logits, {}, 0, &nothing, &scratch).status().code() == absl::StatusCode::kInternal);
}

TEST_CASE("a draw depends on seed and position only, not on what came before") {
  const std::vector<float> logits = RandomLogits(500, 6);
  SamplingParams params;
  params.top_p = 0.9F;
  SamplingScratch scratch(500);
  std::vector<TokenId> forwards;
  Sampler first(params, 77, 500);
  for (int i = 0; i < 50; ++i) forwards.push_back(*first.Sample(logits, {}, i, nullptr, &scratch));
  Sampler second(params, 77, 500);
  Sampler other_seed(params, 78, 500);
  int num_equal = 0;
  for (int i = 49; i >= 0; --i) {
    CHECK(*second.Sample(logits, {}, i, nullptr, &scratch) == forwards[i]);
    num_equal += *other_seed.Sample(logits, {}, i, nullptr, &scratch) == forwards[i] ? 1 : 0;
  }
  CHECK(num_equal < 10);
}

TEST_CASE("broken logits are INTERNAL and leave the sampler usable") {
  std::vector<float> logits = RandomLogits(50, 7);
  SamplingScratch scratch(50);
  Sampler sampler(SamplingParams(), 1, 50);
  const TokenId before = *sampler.Sample(logits, {}, 0, nullptr, &scratch);
  std::vector<float> broken = logits;
  broken[17] = std::numeric_limits<float>::quiet_NaN();
  CHECK(sampler.Sample(broken, {}, 0, nullptr, &scratch).status().code() == absl::StatusCode::kInternal);
  broken[17] = kInfinity;
  CHECK(sampler.Sample(broken, {}, 0, nullptr, &scratch).status().code() == absl::StatusCode::kInternal);
  CHECK(*sampler.Sample(logits, {}, 0, nullptr, &scratch) == before);
}

TEST_CASE("a steady step neither grows nor moves the scratch memory") {
  const std::vector<float> logits = RandomLogits(3000, 8);
  SamplingParams params;
  params.top_p = 0.999F;
  params.repetition_penalty = 1.1F;
  SamplingScratch scratch(3000);
  const auto* candidates = scratch.selector.AtLeast(logits, 0).data();
  Sampler by_mass(params, 1, 3000);
  params.top_k = 20;
  Sampler by_count(params, 1, 3000);
  for (int i = 0; i < 20; ++i) {
    REQUIRE(by_mass.Sample(logits, {}, i, nullptr, &scratch).ok());
    REQUIRE(by_count.Sample(logits, {}, i, nullptr, &scratch).ok());
  }
  CHECK(scratch.selector.AtLeast(logits, 0).data() == candidates);
}

}  // namespace
}  // namespace quire
