#include "bench/speed_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/engine_bench.h"
#include "engine/base/log.h"
#include "engine/base/status.h"
#include "engine/base/version.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/runtime/engine_builder.h"

namespace quire {
namespace {

struct BenchConfig {
  std::string model;
  EngineConfig engine;
  BenchPlan plan;
  std::vector<int64_t> batches = {1, 4, 16};
  bool json = false;
};

nlohmann::json ToJson(const std::string& phase, int64_t batch, const Throughput& throughput) {
  return {{"phase", phase},
          {"batch", batch},
          {"tokens_per_second", throughput.Median()},
          {"min", throughput.Min()},
          {"max", throughput.Max()}};
}

void PrintTable(const nlohmann::json& report) {
  std::printf("weights %s, computed in %s (%s), KV cache %s, %lld threads\n",
              report["weight_type"].get<std::string>().c_str(), report["compute_type"].get<std::string>().c_str(),
              report["compute_type_reason"].get<std::string>().c_str(),
              report["kv_cache_dtype"].get<std::string>().c_str(), report["num_threads"].get<long long>());
  std::printf("%-10s %6s %14s %10s %10s\n", "phase", "batch", "tokens/s", "min", "max");
  for (const auto& row : report["results"]) {
    std::printf("%-10s %6lld %14.1f %10.1f %10.1f\n", row["phase"].get<std::string>().c_str(),
                row["batch"].get<long long>(), row["tokens_per_second"].get<double>(), row["min"].get<double>(),
                row["max"].get<double>());
  }
}

absl::StatusOr<nlohmann::json> RunBench(const BenchConfig& config) {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, OpenCheckpoint(config.model));
  const SteadyClock clock;
  QUIRE_ASSIGN_OR_RETURN(const BuiltEngine built, BuildEngine(*checkpoint, config.engine, &clock));
  nlohmann::json report = {{"model", config.model},
                           {"weight_type", built.info.weight_type},
                           {"compute_type", built.info.compute_type},
                           {"compute_type_reason", built.info.compute_type_reason},
                           {"kv_cache_dtype", built.info.kv_cache_dtype},
                           {"num_threads", built.info.num_threads},
                           {"prompt_tokens", config.plan.prompt_tokens},
                           {"decode_tokens", config.plan.decode_tokens},
                           {"results", nlohmann::json::array()}};
  EngineBench bench(built.loop.get(), config.plan);
  QUIRE_ASSIGN_OR_RETURN(const Throughput prefill, bench.Prefill());
  report["results"].push_back(ToJson("prefill", 1, prefill));
  for (const int64_t batch : config.batches) {
    QUIRE_ASSIGN_OR_RETURN(const Throughput decode, bench.Decode(batch));
    report["results"].push_back(ToJson("decode", batch, decode));
  }
  return report;
}

void AddFlags(CLI::App& app, BenchConfig& config) {
  app.set_version_flag("--version", kVersion);
  app.add_option("--model", config.model, "GGUF file")->required();
  app.add_option("--prompt-tokens", config.plan.prompt_tokens, "Prompt of the prefill measurement")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--context", config.plan.decode_prompt_tokens, "Prompt of the decode measurement")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--decode-tokens", config.plan.decode_tokens, "Output of each request in the decode measurement")
      ->check(CLI::Range(2, 1 << 20))
      ->capture_default_str();
  app.add_option("--batches", config.batches, "Requests at once in the decode measurements")
      ->delimiter(',')
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  app.add_option("--runs", config.plan.num_runs, "Measured runs, after a warm-up")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--weight-type", config.engine.weight_type, "auto, f32 or bf16")->capture_default_str();
  app.add_option("--compute-type", config.engine.compute_type, "auto, f32 or bf16")->capture_default_str();
  app.add_option("--kv-cache-dtype", config.engine.kv_cache_dtype, "auto, f32 or bf16")->capture_default_str();
  app.add_option("--max-num-batched-tokens", config.engine.max_num_batched_tokens, "Tokens of a step")
      ->capture_default_str();
  app.add_option("--threads", config.engine.num_threads, "Compute threads (default: as the server chooses)");
  app.add_flag("--json", config.json, "Print a JSON object instead of a table");
}

}  // namespace

int RunSpeedCommand(int argc, char** argv) {
  CLI::App app(
      "Measures prefill and decode speed of the engine, without a network: tokens per second, median, "
      "minimum and maximum of several runs.");
  app.footer("quire-bench simulate --help: the scheduler and the cache with a fake model, in virtual time.");
  BenchConfig config;
  AddFlags(app, config);
  CLI11_PARSE(app, argc, argv);
  if (const absl::Status status = log::Configure("error"); !status.ok()) return 1;
  const auto report = RunBench(config);
  if (!report.ok()) {
    std::fprintf(stderr, "quire-bench: %s\n", std::string(report.status().message()).c_str());
    return 2;
  }
  if (config.json) {
    std::printf("%s\n", report->dump(2).c_str());
  } else {
    PrintTable(*report);
  }
  return 0;
}

}  // namespace quire
