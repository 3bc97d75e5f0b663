#include "bench/speed_bench.h"

#include <catch2/catch_approx.hpp>
#include <catch2/catch_test_macros.hpp>
#include <memory>
#include <string>

#include "bench/speed_report.h"
#include "engine/checkpoint/checkpoint.h"
#include "tests/support/temp_dir.h"
#include "tests/support/tiny_model.h"

namespace quire::testing {
namespace {

constexpr TinyModelOptions kTiny;

struct TinyBench {
  explicit TinyBench(const EngineConfig& extra = {}) {
    EngineConfig config = extra;
    config.weight_type = "f32";
    config.kv_cache_dtype = "f32";
    config.num_threads = 2;
    config.max_num_seqs = 4;
    config.max_model_len = 256;
    const auto checkpoint = *OpenCheckpoint(WriteTinyModel(kTiny, dir.File("tiny.gguf")));
    auto built = BenchEngine::Build(*checkpoint, config);
    INFO(built.status().ToString());
    REQUIRE(built.ok());
    engine = *std::move(built);
  }

  TempDir dir;
  std::unique_ptr<BenchEngine> engine;
};

}  // namespace

TEST_CASE("A prefill computes each token of its prompt once", "[bench]") {
  TinyBench tiny;
  SpeedBench bench(tiny.engine.get(), {.num_runs = 3});
  const auto result = bench.Prefill(40);
  REQUIRE(result.ok());
  REQUIRE(result->runs.size() == 3);
  for (const RunTotals& run : result->runs) {
    CHECK(run.work.num_tokens == 40);
    CHECK(run.num_prefill_tokens == 40);
    CHECK(run.work.num_logits_rows == 1);
    CHECK(run.work.num_scores == 40 * 41 / 2);
    CHECK(run.seconds > 0);
    CHECK(run.sampling_seconds > 0);
  }
}

TEST_CASE("A decode counts the steps in which every request gets a token", "[bench]") {
  TinyBench tiny;
  SpeedBench bench(tiny.engine.get(), {.decode_tokens = 8, .num_runs = 2});
  const auto result = bench.Decode(3, 50);
  REQUIRE(result.ok());
  REQUIRE(result->runs.size() == 2);
  for (const RunTotals& run : result->runs) {
    CHECK(run.work.num_steps == 8);
    CHECK(run.work.num_tokens == 3 * 8);
    CHECK(run.num_output_tokens == 3 * 8);
    CHECK(run.num_prefill_tokens == 0);
    CHECK(run.work.num_cached_tokens == 3 * (51 + 52 + 53 + 54 + 55 + 56 + 57 + 58));
    CHECK(run.work.num_scores == run.work.num_cached_tokens);
  }
}

TEST_CASE("In a mixed run prompts are computed while all streams decode", "[bench]") {
  TinyBench tiny;
  SpeedBench bench(tiny.engine.get(), {.num_prompts = 3, .num_runs = 1, .profile = true});
  const auto result = bench.Mixed(2, 20, 40);
  REQUIRE(result.ok());
  REQUIRE(result->runs.size() == 1);
  const RunTotals& run = result->runs[0];
  CHECK(run.num_prefill_tokens == 3 * 40);
  CHECK(run.num_output_tokens == 2 * run.work.num_steps);
  CHECK(run.token_gaps.size() == static_cast<size_t>(run.num_output_tokens));
  CHECK(run.work.num_tokens == run.num_prefill_tokens + run.num_output_tokens);

  REQUIRE(result->profiled);
  double profiled_seconds = result->profiled->totals.sampling_seconds;
  for (size_t part = 0; part < kNumStepParts; ++part) {
    profiled_seconds += result->profiled->profile.seconds(static_cast<StepPart>(part));
  }
  CHECK(profiled_seconds > 0);
  CHECK(profiled_seconds <= result->profiled->totals.seconds);
}

TEST_CASE("Requests that do not fit the cache together are an error, not a slow figure", "[bench]") {
  EngineConfig config;
  config.kv_cache_memory_bytes = 2 * 2 * 2 * 16 * 4 * 300;  // 300 tokens
  TinyBench tiny(config);
  SpeedBench bench(tiny.engine.get(), {.decode_tokens = 32, .num_runs = 1});
  const auto result = bench.Decode(4, 100);
  REQUIRE(!result.ok());
  CHECK(result.status().message().find("--kv-cache-memory-bytes") != std::string::npos);
}

TEST_CASE("The sizes of a decoder are those of its matrices", "[bench]") {
  const TinyBench tiny;
  const DecoderSizes& sizes = tiny.engine->sizes();
  const double qkv = 2.0 * (64 + 2 * 32) * 64;  // layers x outputs x inputs
  CHECK(sizes.weight_elements[static_cast<size_t>(StepPart::kQkv)] == qkv);
  CHECK(sizes.weight_bytes[static_cast<size_t>(StepPart::kQkv)] == 4 * qkv);
  CHECK(sizes.weight_elements[static_cast<size_t>(StepPart::kGateUp)] == 2.0 * 2 * 96 * 64);
  CHECK(sizes.weight_elements[static_cast<size_t>(StepPart::kHead)] == 320.0 * 64);
  CHECK(sizes.ops_per_score == 2.0 * 2 * 2 * 64);           // layers, query x key and weight x value, 4 heads of 16
  CHECK(sizes.kv_bytes_per_token == 2.0 * 2 * 2 * 16 * 4);  // layers, keys and values, kv heads of 16, f32
}

TEST_CASE("A report's row holds medians, and shares only of known limits", "[bench]") {
  DecoderSizes sizes;
  sizes.weight_elements[static_cast<size_t>(StepPart::kDown)] = 1e6;
  sizes.weight_bytes[static_cast<size_t>(StepPart::kDown)] = 4e6;
  SpeedResult result = {.phase = "decode", .batch = 2, .context = 32};
  for (const double seconds : {0.1, 0.4, 0.2}) {
    RunTotals run;
    run.work = {.num_steps = 10, .num_head_steps = 10, .num_tokens = 20, .num_logits_rows = 20};
    run.seconds = seconds;
    result.runs.push_back(run);
  }
  const nlohmann::json row = ToJson(result, sizes, "int8", std::nullopt);
  CHECK(row["phase"] == "decode");
  CHECK(row["batch"] == 2);
  CHECK(row["tokens_per_second"] == Catch::Approx(100));
  CHECK(row["min"] == Catch::Approx(50));
  CHECK(row["max"] == Catch::Approx(200));
  CHECK(row["ms_per_step"] == Catch::Approx(20));
  CHECK(row["gigabytes_per_second"] == Catch::Approx(0.2));  // 10 steps of 4 MB in 0.2 s
  CHECK(row["gigaops_per_second"] == Catch::Approx(0.2));    // 20 tokens of 2 M operations
  CHECK(row["bandwidth_share"].is_null());
  CHECK(row["ops_share"].is_null());

  SpeedLimits limits;
  limits.weight_read_bytes_per_second = 1e9;
  limits.machine.int8_ops_per_second = 2e9;
  const nlohmann::json limited = ToJson(result, sizes, "int8", limits);
  CHECK(limited["bandwidth_share"] == Catch::Approx(0.2));
  CHECK(limited["ops_share"] == Catch::Approx(0.1));
  CHECK(ToJson(result, sizes, "int2", limits)["ops_share"].is_null());
}

}  // namespace quire::testing
