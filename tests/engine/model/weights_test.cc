#include "engine/model/weights.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/model/model_config.h"
#include "tests/engine/model/decoder_harness.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace quire::testing {
namespace {

struct Fixture {
  explicit Fixture(const TinyModelOptions& options = {}) {
    checkpoint = OpenCheckpoint(WriteTinyModel(options, dir.File("tiny.gguf"))).value();
    config = ReadModelConfig(*checkpoint).value();
  }

  // The error of planning with a config that does not fit the file.
  std::string PlanError() const {
    const auto plan = PlanWeights(*checkpoint, config, WeightType::kF32);
    REQUIRE(plan.status().code() == absl::StatusCode::kInvalidArgument);
    return std::string(plan.status().message());
  }

  TempDir dir;
  std::unique_ptr<Checkpoint> checkpoint;
  ModelConfig config;
};

bool Contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("the shape is read from metadata, also where head_dim is not hidden_size / num_heads") {
  TinyModelOptions options;
  options.head_dim = 24;
  options.tied_embeddings = false;
  const Fixture fixture(options);
  CHECK(fixture.config.num_layers == options.num_layers);
  CHECK(fixture.config.hidden_size == options.hidden_size);
  CHECK(fixture.config.intermediate_size == options.intermediate_size);
  CHECK(fixture.config.num_heads == options.num_heads);
  CHECK(fixture.config.num_kv_heads == options.num_kv_heads);
  CHECK(fixture.config.head_dim == 24);
  CHECK(fixture.config.vocab_size == options.vocab_size);
  CHECK(fixture.config.context_length == options.context_length);
  CHECK_FALSE(fixture.config.tied_embeddings);
  CHECK(Fixture().config.tied_embeddings);
}

TEST_CASE("a tensor of another shape is named with both shapes") {
  Fixture fixture;
  fixture.config.intermediate_size += 32;
  const std::string error = fixture.PlanError();
  CHECK(Contains(error, "expected a tensor blk.0.ffn_gate.weight [128, 64], found [96, 64]"));
  CHECK(Contains(error, fixture.checkpoint->path()));
}

TEST_CASE("a missing tensor is named") {
  Fixture fixture;
  fixture.config.num_layers += 1;
  CHECK(Contains(fixture.PlanError(), "expected a tensor blk.2.attn_norm.weight [64], found none"));
}

TEST_CASE("loaded weights take the bytes that were planned, and progress ends at the whole") {
  const std::optional<WeightType> type =
      GENERATE(as<std::optional<WeightType>>(), std::nullopt, WeightType::kF32, WeightType::kBF16, WeightType::kInt8);
  for (const bool tied : {true, false}) {
    TinyModelOptions options;
    options.storage_type = StorageType::kQ4_1;
    options.tied_embeddings = tied;
    const Fixture fixture(options);
    ThreadTeam team(2, LoadScratchBytesFor(fixture.config));
    int64_t last_done = 0;
    int64_t total = 1;
    const WeightPlan plan = PlanWeights(*fixture.checkpoint, fixture.config, type).value();
    const auto weights = LoadWeights(*fixture.checkpoint, fixture.config, plan, team, [&](int64_t done, int64_t all) {
      CHECK(done > last_done);
      last_done = done;
      total = all;
    });
    REQUIRE(weights.ok());
    CHECK(last_done == total);
    CHECK(weights->arena.used_bytes() == weights->arena.size_bytes());
    const int64_t norm_bytes = (2 * fixture.config.num_layers + 1) * fixture.config.hidden_size * 4;
    CHECK(plan.total_bytes() == weights->arena.size_bytes() + norm_bytes);
  }
}

TEST_CASE("a file cut short after it was opened is an error of loading, on any number of threads") {
  for (const int64_t num_threads : {1, 2}) {
    const Fixture fixture;
    std::filesystem::resize_file(fixture.checkpoint->path(),
                                 static_cast<uintmax_t>(fixture.checkpoint->file_size_bytes() / 2));
    ThreadTeam team(num_threads, LoadScratchBytesFor(fixture.config));
    const WeightPlan plan = PlanWeights(*fixture.checkpoint, fixture.config, WeightType::kBF16).value();
    const auto weights = LoadWeights(*fixture.checkpoint, fixture.config, plan, team, [](int64_t, int64_t) {});
    CHECK(weights.status().code() == absl::StatusCode::kDataLoss);
    CHECK(Contains(std::string(weights.status().message()), "cut short"));
  }
}

TEST_CASE("weights are stored as the file has them unless asked otherwise") {
  TinyModelOptions options;
  for (const auto& [file, stored] :
       {std::pair(StorageType::kF32, WeightType::kF32), std::pair(StorageType::kF16, WeightType::kBF16),
        std::pair(StorageType::kBF16, WeightType::kBF16), std::pair(StorageType::kQ8_0, WeightType::kQ8_0),
        std::pair(StorageType::kQ4_0, WeightType::kQ4_0), std::pair(StorageType::kQ4_1, WeightType::kQ4_1)}) {
    options.storage_type = file;
    const Fixture fixture(options);
    const WeightPlan plan = PlanWeights(*fixture.checkpoint, fixture.config, std::nullopt).value();
    CHECK(plan.layers[1].qkv_proj.shape.weight_type == stored);
    CHECK(plan.lm_head.shape.weight_type == stored);
    CHECK(plan.DescribeTypes() == ToString(stored));
    const WeightPlan int8 = PlanWeights(*fixture.checkpoint, fixture.config, WeightType::kInt8).value();
    CHECK(int8.DescribeTypes() == "int8");
  }
}

TEST_CASE("a layer whose inputs do not come in whole groups is stored in bf16") {
  TinyModelOptions options;
  options.head_dim = 24;  // two heads of a group are 48 columns
  options.storage_type = StorageType::kQ8_0;
  const Fixture fixture(options);
  const WeightPlan plan = PlanWeights(*fixture.checkpoint, fixture.config, std::nullopt).value();
  CHECK(plan.layers[0].o_proj.shape.weight_type == WeightType::kBF16);
  CHECK(plan.layers[0].qkv_proj.shape.weight_type == WeightType::kQ8_0);
  CHECK(plan.DescribeTypes() == "q8_0, bf16");
  CHECK_FALSE(plan.forms().attended.int8);
  CHECK(plan.forms().normed.int8);
}

// Inputs of a layer are rounded to 1/127 of a group's greatest, which is about three times its root mean square: by
// 3 / 127 / sqrt(12) = 0.7 % each, over the eight layers of the two-layer model by sqrt(8) times that, 2 %.
TEST_CASE("quantized weights, computed as they are stored, give nearly the logits of f32") {
  for (const StorageType storage : {StorageType::kQ8_0, StorageType::kQ4_0, StorageType::kQ4_1}) {
    for (const int64_t head_dim : {16, 24}) {
      const TempDir dir;
      TinyModelOptions options;
      options.storage_type = storage;
      options.head_dim = head_dim;
      const std::string path = WriteTinyModel(options, dir.File("tiny.gguf"));
      DecoderHarness reference(path, {});
      DecoderHarness quantized(path, {.weight_type = std::nullopt, .compute_type = "auto"});
      const std::vector<TokenId> tokens = {1, 50, 100, 150, 200, 250, 300, 7, 9, 11};
      double error = 0;
      double size = 0;
      const auto expected = reference.Forward({{0, tokens}});
      const auto logits = quantized.Forward({{0, tokens}});
      for (size_t row = 0; row < logits.size(); ++row) {
        for (size_t i = 0; i < logits[row].size(); ++i) {
          error += std::pow(logits[row][i] - expected[row][i], 2);
          size += std::pow(expected[row][i], 2);
        }
      }
      INFO(ToString(storage) << ", head_dim " << head_dim << ": " << std::sqrt(error / size));
      CHECK(std::sqrt(error / size) <= 0.04);
    }
  }
}

}  // namespace quire::testing
