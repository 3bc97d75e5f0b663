#include "bench/speed_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <new>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "bench/bench_engine.h"
#include "bench/model_flags.h"
#include "bench/speed_bench.h"
#include "bench/speed_report.h"
#include "engine/base/log.h"
#include "engine/base/status.h"
#include "engine/base/version.h"

namespace quire {
namespace {

constexpr const char* kDescription =
    "Measures the speed of a model, without a network: tokens per second (median, minimum and maximum of several "
    "runs), "
    "milliseconds a step, bytes of weights, keys and values read and operations done per second, and what share of "
    "this "
    "machine's limits that is. Everything is in it but the delivery to another thread: scheduling, model, sampling. "
    "Greedy, the end of generation ignored, prompts of random tokens.";
constexpr const char* kFooter =
    "Commands: prefill, decode, mixed (requests decode while prompts arrive one after another), speed (prefill and "
    "decode; also without a command), probe (the machine's limits), accuracy (types against f32), simulate (the "
    "scheduler with a fake model, in virtual time). Each has --help.\n"
    "--json prints {..., \"limits\", \"results\": [{\"phase\", \"batch\", \"context\", \"prompt_tokens\", "
    "\"tokens_per_second\", \"min\", \"max\", \"ms_per_step\", ...}]}.";

struct SpeedOptions {
  ModelFlags flags;
  SpeedPhases phases;
  SpeedPlan plan;
  bool no_probe = false;
};

int64_t Largest(const std::vector<int64_t>& values) { return *std::ranges::max_element(values); }

// Room for the longest requests, as many of them as run together.
EngineConfig ConfigFor(const SpeedOptions& options) {
  constexpr int64_t kLeastModelLen = 256;
  const SpeedPlan& plan = options.plan;
  const SpeedPhases& phases = options.phases;
  EngineConfig config = options.flags.engine;
  int64_t max_model_len = kLeastModelLen;
  config.max_num_seqs = 1;
  if (phases.prefill || phases.mixed) max_model_len = std::max(max_model_len, Largest(plan.prompt_tokens) + 1);
  if (phases.decode || phases.mixed) config.max_num_seqs = Largest(plan.batches) + (phases.mixed ? 1 : 0);
  if (phases.decode) max_model_len = std::max(max_model_len, Largest(plan.contexts) + plan.decode_tokens + 1);
  if (phases.mixed) {
    const int64_t output_tokens = SpeedBench::MixedOutputTokens(Largest(plan.prompt_tokens), plan.num_prompts);
    max_model_len = std::max(max_model_len, Largest(plan.contexts) + output_tokens);
  }
  config.max_model_len = max_model_len;
  return config;
}

SpeedLimits MeasureLimits(int64_t num_threads, double weight_bytes_per_step) {
  constexpr int64_t kMaxBytes = int64_t{1} << 30;
  SpeedLimits limits;
  limits.machine = MeasureMachineLimits(num_threads);
  ThreadTeam team(num_threads, 0);
  limits.weight_read_bytes_per_second =
      MeasureReadBandwidth(team, std::min(kMaxBytes, static_cast<int64_t>(weight_bytes_per_step)));
  return limits;
}

absl::StatusOr<std::vector<SpeedResult>> MeasureAll(const SpeedOptions& options, BenchEngine* engine) {
  const SpeedPlan& plan = options.plan;
  SpeedBench bench(engine, plan);
  std::vector<SpeedResult> results;
  const auto add = [&results](absl::StatusOr<SpeedResult> result) -> absl::Status {
    QUIRE_RETURN_IF_ERROR(result.status());
    results.push_back(*std::move(result));
    return absl::OkStatus();
  };
  if (options.phases.prefill) {
    for (const int64_t tokens : plan.prompt_tokens) QUIRE_RETURN_IF_ERROR(add(bench.Prefill(tokens)));
  }
  for (const int64_t context : plan.contexts) {
    for (const int64_t batch : plan.batches) {
      if (options.phases.decode) QUIRE_RETURN_IF_ERROR(add(bench.Decode(batch, context)));
      if (!options.phases.mixed) continue;
      for (const int64_t tokens : plan.prompt_tokens) QUIRE_RETURN_IF_ERROR(add(bench.Mixed(batch, context, tokens)));
    }
  }
  return results;
}

absl::StatusOr<nlohmann::json> MeasureSpeed(const SpeedOptions& options) {
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<Checkpoint> checkpoint, OpenCheckpoint(options.flags.model));
  QUIRE_ASSIGN_OR_RETURN(const std::unique_ptr<BenchEngine> engine,
                         BenchEngine::Build(*checkpoint, ConfigFor(options)));
  const EngineInfo& info = engine->info();
  const double weight_bytes = engine->sizes().weight_bytes_per_step();
  std::optional<SpeedLimits> limits;
  if (!options.no_probe) limits = MeasureLimits(info.num_threads, weight_bytes);
  QUIRE_ASSIGN_OR_RETURN(const std::vector<SpeedResult> results, MeasureAll(options, engine.get()));
  nlohmann::json report = {{"model", options.flags.model},
                           {"weight_type", info.weight_type},
                           {"compute_type", info.compute_type},
                           {"compute_type_reason", info.compute_type_reason},
                           {"kv_cache_dtype", info.kv_cache_dtype},
                           {"num_threads", info.num_threads},
                           {"weight_mebibytes_per_step", weight_bytes / (1 << 20)},
                           {"decode_tokens", options.plan.decode_tokens},
                           {"runs", options.plan.num_runs},
                           {"limits", nullptr},
                           {"results", nlohmann::json::array()}};
  if (limits) report["limits"] = ToJson(*limits);
  for (const SpeedResult& result : results) {
    report["results"].push_back(ToJson(result, engine->sizes(), info.compute_type, limits));
  }
  return report;
}

void AddList(CLI::App& app, const char* name, std::vector<int64_t>& values, int max, const char* help) {
  app.add_option(name, values, help)->delimiter(',')->check(CLI::Range(1, max))->capture_default_str();
}

void AddFlags(CLI::App& app, SpeedOptions& options) {
  constexpr int kMaxTokens = 1 << 20;
  SpeedPlan& plan = options.plan;
  const SpeedPhases& phases = options.phases;
  EngineConfig& engine = options.flags.engine;
  app.set_version_flag("--version", kVersion);
  AddModelFlags(app, options.flags);
  if (phases.prefill || phases.mixed) {
    AddList(app, "--prompt-tokens", plan.prompt_tokens, kMaxTokens, "Lengths of the prompts that are computed");
  }
  if (phases.decode || phases.mixed) {
    AddList(app, "--batches", plan.batches, 4096, "How many requests decode at once");
    AddList(app, "--contexts,--context", plan.contexts, kMaxTokens, "Tokens that each has cached at the beginning");
  }
  if (phases.decode) {
    app.add_option("--decode-tokens", plan.decode_tokens, "Output of each request in a run")
        ->check(CLI::Range(1, kMaxTokens))
        ->capture_default_str();
  }
  if (phases.mixed) {
    app.add_option("--prompts", plan.num_prompts, "Prompts that arrive in a run")
        ->check(CLI::Range(1, 4096))
        ->capture_default_str();
    app.add_option("--target-step-ms", engine.target_step_ms, "As quire-server takes it")->capture_default_str();
  }
  app.add_option("--runs", plan.num_runs, "Measured runs, after a warm-up")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--max-num-batched-tokens", engine.max_num_batched_tokens, "Tokens of a step (default: auto)");
  app.add_option("--kv-cache-memory-bytes", engine.kv_cache_memory_bytes,
                 "Pool of keys and values (default: what the requests need, at most 4 GiB)");
  app.add_flag("--profile", plan.profile, "One more run, with the time of each part of a step");
  app.add_flag("--no-probe", options.no_probe,
               "Leave out the machine's limits, which take seconds and 1 GiB to measure");
}

}  // namespace

int RunSpeedCommand(const SpeedPhases& phases, int argc, char** argv) {
  CLI::App app(kDescription);
  app.footer(kFooter);
  SpeedOptions options;
  options.phases = phases;
  if (phases.mixed) options.plan.batches = {16};
  if (phases.mixed) options.plan.contexts = {128};
  AddFlags(app, options);
  CLI11_PARSE(app, argc, argv);
  if (const absl::Status status = log::Configure("error"); !status.ok()) return ReportFailure(status);
  absl::StatusOr<nlohmann::json> report;
  try {
    report = MeasureSpeed(options);
  } catch (const std::bad_alloc&) {
    report = absl::ResourceExhaustedError("out of memory; --no-probe needs 1 GiB less");
  }
  if (!report.ok()) return ReportFailure(report.status());
  if (options.flags.json) {
    std::printf("%s\n", report->dump(2).c_str());
  } else {
    PrintSpeedReport(*report);
  }
  return 0;
}

}  // namespace quire
