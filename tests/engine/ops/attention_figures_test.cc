// The worked figures of the course text, reproduced by the attention that serves.

#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <vector>

#include "tests/engine/ops/attention_harness.h"
#include "tests/support/test_data.h"

namespace quire::testing {
namespace {

nlohmann::json Figures(const std::string& name) {
  std::ifstream file(RequireTestData("attention/" + name));
  return nlohmann::json::parse(file);
}

Matrix Multiply(const Matrix& a, const Matrix& b) {
  Matrix product(a.size(), std::vector<float>(b[0].size()));
  for (size_t i = 0; i < a.size(); ++i) {
    for (size_t j = 0; j < b[0].size(); ++j) {
      double sum = 0;
      for (size_t k = 0; k < b.size(); ++k) sum += static_cast<double>(a[i][k]) * b[k][j];
      product[i][j] = static_cast<float>(sum);
    }
  }
  return product;
}

// Row t is 1 at t: outputs are then the attention weights themselves.
Matrix Identity(int64_t num_tokens, int64_t head_dim) {
  Matrix values(num_tokens, std::vector<float>(head_dim));
  for (int64_t t = 0; t < num_tokens; ++t) values[t][t] = 1.0F;
  return values;
}

std::vector<float> Padded(std::vector<float> row, int64_t size) {
  row.resize(size);
  return row;
}

// [tokens, heads, head_dim] as [tokens, heads * head_dim].
Matrix JoinHeads(const nlohmann::json& values) {
  Matrix rows;
  for (const auto& token : values) {
    rows.emplace_back();
    for (const auto& head : token) {
      for (const auto& value : head) rows.back().push_back(value.get<float>());
    }
  }
  return rows;
}

// Attention weights of the last of `keys`' positions. // [num_keys]
std::vector<float> WeightsOf(const std::vector<float>& query, const Matrix& keys, float scale) {
  const auto num_keys = static_cast<int64_t>(keys.size());
  const int64_t head_dim = std::max<int64_t>(static_cast<int64_t>(query.size()), num_keys + num_keys % 2);
  AttentionSequence sequence;
  for (const auto& key : keys) {
    sequence.keys.push_back(Padded(key, head_dim));
    sequence.queries.push_back(Padded(query, head_dim));
  }
  sequence.values = Identity(num_keys, head_dim);
  const AttentionShape shape = {.head_dim = head_dim, .score_scale = scale};
  std::vector<float> weights = AttentionHarness(shape, {sequence}).Whole().back();
  weights.resize(num_keys);
  return weights;
}

}  // namespace

TEST_CASE("figure: a lookup by similarity", "[ops][figures]") {
  const auto lookup = Figures("worked_examples.json")["lookup"];
  const auto keys = lookup["keys"].get<Matrix>();
  Matrix values;
  for (const auto& row : lookup["values"].get<Matrix>()) values.push_back(Padded(row, 4));
  REQUIRE(lookup["cases"].size() == 3);
  for (const auto& example : lookup["cases"]) {
    const auto query = example["query"].get<std::vector<float>>();
    const std::vector<float> weights = WeightsOf(query, keys, 0.5F);
    const AttentionShape shape = {.head_dim = 4, .score_scale = 0.5F};
    const auto output = AttentionHarness(shape, {{Matrix(3, query), keys, values}}).Whole().back();
    for (size_t i = 0; i < 3; ++i) {
      CHECK(std::abs(weights[i] - example["weights"][i].get<double>()) <= 1e-6);
      CHECK(std::abs(weights[i] - example["printed_weights"][i].get<double>()) <= 6e-5);
    }
    for (size_t i = 0; i < 2; ++i) {
      CHECK(std::abs(output[i] - example["output"][i].get<double>()) <= 1e-6);
      CHECK(std::abs(output[i] - example["printed_output"][i].get<double>()) <= 6e-5);
    }
  }
}

TEST_CASE("figure: causal attention, and cached equals recomputed", "[ops][figures]") {
  const auto figure = Figures("worked_examples.json")["causal_cache"];
  const auto x = figure["X"].get<Matrix>();
  const AttentionSequence sequence = {Multiply(x, figure["Wq"].get<Matrix>()), Multiply(x, figure["Wk"].get<Matrix>()),
                                      Multiply(x, figure["Wv"].get<Matrix>())};
  const AttentionShape shape = {.head_dim = 32, .score_scale = 1.0F / std::sqrt(32.0F)};
  const Matrix recomputed = AttentionHarness(shape, {sequence}).Whole();
  CHECK(LargestDifference(recomputed, figure["causal_output"].get<Matrix>()) <= 1e-5);

  AttentionHarness cached(shape, {sequence});
  Matrix token_by_token;
  for (int64_t t = 0; t < 16; ++t) token_by_token.push_back(cached.Step({t}, {t + 1}).front());
  CHECK(LargestDifference(token_by_token, recomputed) == 0.0);
}

TEST_CASE("figure: causal rows sum to one and masked weights are exactly zero", "[ops][figures]") {
  const AttentionShape shape = {.head_dim = 32, .score_scale = 1.0F / std::sqrt(32.0F)};
  AttentionSequence sequence = RandomSequence(shape, 32, 9);
  sequence.values = Identity(32, 32);
  const Matrix weights = AttentionHarness(shape, {sequence}).Whole();
  for (int64_t t = 0; t < 32; ++t) {
    double sum = 0;
    for (int64_t j = 0; j <= t; ++j) {
      CHECK(weights[t][j] > 0.0F);
      sum += weights[t][j];
    }
    CHECK(std::abs(sum - 1.0) <= 1e-6);
    for (int64_t j = t + 1; j < 32; ++j) CHECK(weights[t][j] == 0.0F);
  }
}

TEST_CASE("figure: grouped queries across block boundaries", "[ops][figures]") {
  const auto cases = Figures("causal_gqa.json");
  REQUIRE(cases.size() == 4);
  for (const auto& example : cases) {
    const auto head_dim = example["head_dim"].get<int64_t>();
    const AttentionShape shape = {.num_heads = example["num_heads"].get<int64_t>(),
                                  .num_kv_heads = example["num_kv_heads"].get<int64_t>(),
                                  .head_dim = head_dim,
                                  .score_scale = 1.0F / std::sqrt(static_cast<float>(head_dim))};
    const AttentionSequence sequence = {JoinHeads(example["q"]), JoinHeads(example["k"]), JoinHeads(example["v"])};
    const Matrix expected = JoinHeads(example["output"]);
    INFO("seed " << example["seed"]);
    CHECK(LargestDifference(AttentionHarness(shape, {sequence}).Whole(), expected) <= 1e-5);
    AttentionHarness cached(shape, {sequence});
    Matrix token_by_token;
    for (int64_t t = 0; t < static_cast<int64_t>(expected.size()); ++t) {
      token_by_token.push_back(cached.Step({t}, {t + 1}).front());
    }
    CHECK(LargestDifference(token_by_token, expected) <= 1e-5);
  }
}

TEST_CASE("figure: without the scale, wide heads saturate the softmax", "[ops][figures]") {
  constexpr int kTrials = 200;
  constexpr int64_t kKeys = 16;
  const auto figures = Figures("worked_examples.json")["saturation_16_keys_200_trials"];
  REQUIRE(figures.size() == 3);
  for (const auto& figure : figures) {
    const auto d_k = figure["d_k"].get<int64_t>();
    std::mt19937_64 random(static_cast<uint64_t>(d_k));
    std::normal_distribution<float> normal;
    const auto vector = [&] {
      std::vector<float> values(d_k);
      for (float& value : values) value = normal(random);
      return values;
    };
    double raw = 0;
    double scaled = 0;
    for (int trial = 0; trial < kTrials; ++trial) {
      const std::vector<float> query = vector();
      Matrix keys(kKeys);
      for (auto& key : keys) key = vector();
      const auto largest = [&](float scale) {
        const std::vector<float> weights = WeightsOf(query, keys, scale);
        return *std::max_element(weights.begin(), weights.end());
      };
      raw += largest(1.0F) / kTrials;
      scaled += largest(1.0F / std::sqrt(static_cast<float>(d_k))) / kTrials;
    }
    // Means of 200 trials of other random numbers than the figure's: about four standard errors.
    INFO("d_k " << d_k << ": raw " << raw << ", scaled " << scaled);
    CHECK(std::abs(raw - figure["max_weight_raw"].get<double>()) <= 0.06);
    CHECK(std::abs(scaled - figure["max_weight_scaled"].get<double>()) <= 0.03);
  }
}

}  // namespace quire::testing
