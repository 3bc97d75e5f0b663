#include "bench/simulate_command.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "bench/report.h"
#include "bench/simulator.h"
#include "bench/trace.h"
#include "bench/workload.h"
#include "engine/base/status.h"

namespace quire {
namespace {

struct SimulateOptions {
  Workload workload;
  std::vector<std::string> tenants;
  std::vector<std::string> priorities;
  std::string trace_path;
  std::string written_trace_path;
  std::optional<double> oversubscription;
  SimulationConfig simulation;
  LatencyLimits limits;
  int64_t kv_bytes_per_token = 23040;
  bool json = false;
};

std::vector<std::string> SplitAtColons(const std::string& text) {
  std::vector<std::string> parts(1);
  for (const char c : text) {
    if (c == ':') {
      parts.emplace_back();
    } else {
      parts.back() += c;
    }
  }
  return parts;
}

absl::StatusOr<double> ParseNumber(std::string_view field, const std::string& text) {
  char* end = nullptr;
  const double number = std::strtod(text.c_str(), &end);
  if (text.empty() || *end != '\0') return InvalidArgument(field, text, "a number");
  return number;
}

// NAME:SHARE[:WEIGHT[:MAX_RUNNING]], into the workload and the scheduler.
absl::Status ParseTenants(SimulateOptions* options) {
  if (!options->tenants.empty()) options->workload.tenants.clear();
  for (const std::string& text : options->tenants) {
    const std::vector<std::string> parts = SplitAtColons(text);
    if (parts.size() < 2 || parts.size() > 4) {
      return InvalidArgument("tenants", text, "NAME:SHARE[:WEIGHT[:MAX_RUNNING]]");
    }
    WorkloadTenant tenant{.name = parts[0]};
    QUIRE_ASSIGN_OR_RETURN(tenant.share, ParseNumber("tenants", parts[1]));
    options->workload.tenants.push_back(tenant);
    TenantLimits limits;
    if (parts.size() > 2) {
      QUIRE_ASSIGN_OR_RETURN(limits.weight, ParseNumber("tenants", parts[2]));
    }
    if (parts.size() > 3) {
      QUIRE_ASSIGN_OR_RETURN(const double max_running, ParseNumber("tenants", parts[3]));
      limits.max_running_requests = static_cast<int64_t>(max_running);
    }
    options->simulation.scheduler.tenants[tenant.name] = limits;
  }
  return absl::OkStatus();
}

// PRIORITY:SHARE.
absl::Status ParsePriorities(SimulateOptions* options) {
  if (!options->priorities.empty()) options->workload.priorities.clear();
  for (const std::string& text : options->priorities) {
    const std::vector<std::string> parts = SplitAtColons(text);
    if (parts.size() != 2) return InvalidArgument("priorities", text, "PRIORITY:SHARE");
    QUIRE_ASSIGN_OR_RETURN(const double priority, ParseNumber("priorities", parts[0]));
    QUIRE_ASSIGN_OR_RETURN(const double share, ParseNumber("priorities", parts[1]));
    options->workload.priorities.push_back({.priority = static_cast<int32_t>(priority), .share = share});
  }
  return absl::OkStatus();
}

// As many requests at once as together want `oversubscription` times the pool when they are complete.
int64_t ConcurrencyFor(double oversubscription, const Trace& trace, const SimulationConfig& config) {
  double num_tokens = 0;
  for (const TraceRequest& request : trace) {
    num_tokens += static_cast<double>(request.prompt_tokens + request.output_tokens);
  }
  const double mean_tokens = num_tokens / static_cast<double>(trace.size());
  const auto num_slots = static_cast<double>(config.cache.num_blocks * config.cache.block_size);
  return std::max<int64_t>(1, static_cast<int64_t>(oversubscription * num_slots / mean_tokens));
}

absl::StatusOr<Trace> GetTrace(const Workload& workload, const std::string& path) {
  if (!path.empty()) return ReadTrace(path);
  QUIRE_RETURN_IF_ERROR(workload.Validate());
  return MakeTrace(workload);
}

absl::StatusOr<nlohmann::json> Simulate(SimulateOptions* options) {
  SimulationConfig& simulation = options->simulation;
  QUIRE_RETURN_IF_ERROR(ParseTenants(options));
  QUIRE_RETURN_IF_ERROR(ParsePriorities(options));
  simulation.scheduler.max_num_logits_rows =
      std::max(simulation.scheduler.max_num_logits_rows, simulation.scheduler.max_num_seqs);
  QUIRE_RETURN_IF_ERROR(simulation.scheduler.Validate());
  // What is longer than the pool or the model could never run, and would only be refused.
  options->workload.max_request_tokens =
      std::min(simulation.scheduler.max_model_len, simulation.cache.num_blocks * simulation.cache.block_size);
  QUIRE_ASSIGN_OR_RETURN(const Trace trace, GetTrace(options->workload, options->trace_path));
  if (!options->written_trace_path.empty()) QUIRE_RETURN_IF_ERROR(WriteTrace(trace, options->written_trace_path));
  if (options->oversubscription) {
    simulation.concurrency = ConcurrencyFor(*options->oversubscription, trace, simulation);
  }
  QUIRE_ASSIGN_OR_RETURN(const SimulationResult result, Simulator(simulation, trace).Run());
  return MakeReport(trace, simulation, result, options->limits, options->kv_bytes_per_token);
}

template <typename Value>
void AddOption(CLI::App& app, const char* name, Value& value, const char* help) {
  app.add_option(name, value, help)->capture_default_str();
}

void AddWorkloadFlags(CLI::App& app, SimulateOptions& options) {
  Workload& workload = options.workload;
  app.add_option("--trace", options.trace_path, "JSON lines to replay, instead of the workload below");
  app.add_option("--write-trace", options.written_trace_path, "Write the trace that is replayed to this file");
  AddOption(app, "--seed", workload.seed, "Of the workload: the same flags and seed make the same trace");
  AddOption(app, "--requests", workload.num_requests, "Requests of the workload");
  AddOption(app, "--rate", workload.requests_per_second, "Arrivals a second, Poisson");
  app.add_option("--concurrency", options.simulation.concurrency,
                 "Closed loop: this many requests at once, whatever their arrival")
      ->check(CLI::PositiveNumber);
  app.add_option("--oversubscription", options.oversubscription,
                 "Closed loop: as many requests at once as together come to want this many times the pool")
      ->check(CLI::PositiveNumber)
      ->excludes("--concurrency");
  AddOption(app, "--prompt-median", workload.prompt.median, "Prompt tokens, log-normal");
  AddOption(app, "--prompt-sigma", workload.prompt.sigma, "Deviation of the prompt length's logarithm");
  AddOption(app, "--output-median", workload.output.median, "Output tokens, log-normal");
  AddOption(app, "--output-sigma", workload.output.sigma, "Deviation of the output length's logarithm");
  app.add_option("--tenants", options.tenants, "NAME:SHARE[:WEIGHT[:MAX_RUNNING]],...: shares of the requests")
      ->delimiter(',');
  app.add_option("--priorities", options.priorities, "PRIORITY:SHARE,...: shares of the requests; lower runs first")
      ->delimiter(',');
  AddOption(app, "--system-prompt-share", workload.system_prompt_share, "Conversations with a system prompt");
  AddOption(app, "--system-prompts", workload.num_system_prompts, "Different system prompts");
  AddOption(app, "--system-prompt-tokens", workload.system_prompt_tokens, "Tokens of each");
  AddOption(app, "--turns", workload.mean_turns, "Mean turns of a conversation, geometric");
  AddOption(app, "--think-seconds", workload.mean_think_seconds, "Mean time between a conversation's turns");
  AddOption(app, "--cancel-probability", workload.cancel_probability, "Of a request");
  AddOption(app, "--cancel-seconds", workload.mean_cancel_seconds, "Mean time from arrival to cancellation");
}

void AddEngineFlags(CLI::App& app, SimulationConfig& simulation) {
  app.add_option("--blocks", simulation.cache.num_blocks, "Blocks of the pool")
      ->check(CLI::Range(1, 1 << 24))
      ->capture_default_str();
  app.add_option("--block-size", simulation.cache.block_size, "Tokens of a block")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  AddOption(app, "--enable-prefix-caching", simulation.cache.enable_prefix_caching, "Keep prefixes, and find them");
  AddOption(app, "--max-num-batched-tokens", simulation.scheduler.max_num_batched_tokens, "Tokens of a step");
  AddOption(app, "--max-num-seqs", simulation.scheduler.max_num_seqs, "Requests running at once");
  AddOption(app, "--max-model-len", simulation.scheduler.max_model_len, "Prompt and output of a request, in tokens");
  app.add_option("--target-step-seconds", simulation.scheduler.target_step_seconds,
                 "Steps with decodes are shortened to take this long (default: never)");
  AddOption(app, "--priority-aging-seconds", simulation.scheduler.priority_aging_seconds,
            "Waiting this long counts as one level of priority");
  CostModel& cost = simulation.cost;
  AddOption(app, "--seconds-per-step", cost.seconds_per_step, "Cost model: of every step");
  AddOption(app, "--seconds-per-prefill-token", cost.seconds_per_prefill_token, "Cost model: of a chunk's token");
  AddOption(app, "--seconds-per-decode", cost.seconds_per_decode, "Cost model: of a request with one token");
  AddOption(app, "--seconds-per-context-token", cost.seconds_per_context_token,
            "Cost model: of a token whose keys and values are read");
}

void AddReportFlags(CLI::App& app, SimulateOptions& options) {
  AddOption(app, "--ttft-limit", options.limits.ttft_seconds, "Time to first token that goodput keeps, in seconds");
  AddOption(app, "--tpot-limit", options.limits.tpot_seconds, "Mean time between tokens that goodput keeps");
  AddOption(app, "--kv-bytes-per-token", options.kv_bytes_per_token, "Turns slots into bytes");
  app.add_flag("--json", options.json, "Print a JSON object instead of tables");
}

}  // namespace

int RunSimulateCommand(int argc, char** argv) {
  CLI::App app(
      "Replays a trace of requests through the real scheduler and the cache's bookkeeping, with a model that only "
      "takes virtual time. A step takes a + b * prefill tokens + c * decodes + d * context tokens; the defaults are "
      "those of SmolLM2-135M on two cores.");
  SimulateOptions options;
  options.simulation.scheduler.max_model_len = 4096;
  AddWorkloadFlags(app, options);
  AddEngineFlags(app, options.simulation);
  AddReportFlags(app, options);
  CLI11_PARSE(app, argc, argv);
  const auto report = Simulate(&options);
  if (!report.ok()) {
    std::fprintf(stderr, "quire-bench: %s\n", std::string(report.status().message()).c_str());
    return 2;
  }
  if (options.json) {
    std::printf("%s\n", report->dump(2).c_str());
  } else {
    PrintReport(*report);
  }
  return 0;
}

}  // namespace quire
