#include "bench/probe_command.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>
#include <optional>

#include "bench/machine_limits.h"
#include "bench/model_flags.h"
#include "engine/runtime/system_limits.h"

namespace quire {
namespace {

void PrintRow(const char* name, const nlohmann::json& value, const char* unit) {
  if (value.is_null()) {
    std::printf("%-44s %9s\n", name, "none");
  } else {
    std::printf("%-44s %9.1f %s\n", name, value.get<double>(), unit);
  }
}

void PrintTable(const nlohmann::json& report) {
  std::printf("%lld threads, vector code for %s\n", report["num_threads"].get<long long>(),
              report["vector_target"].get<std::string>().c_str());
  PrintRow("read bandwidth, 1 GiB", report["memory_gigabytes_per_second"], "GB/s");
  PrintRow("read bandwidth, 64 MiB again and again", report["cached_gigabytes_per_second"], "GB/s");
  PrintRow("f32 multiply-add, vector", report["f32_gigaops_per_second"], "GFLOP/s");
  PrintRow("bf16 dot, vector", report["bf16_gigaops_per_second"], "GFLOP/s");
  PrintRow("u8 x s8 dot, vector", report["int8_gigaops_per_second"], "GOP/s");
  PrintRow("f32 matrix product, oneDNN", report["matrix_f32_gigaops_per_second"], "GFLOP/s");
  PrintRow("bf16 matrix product, oneDNN", report["matrix_bf16_gigaops_per_second"], "GFLOP/s");
}

}  // namespace

int RunProbeCommand(int argc, char** argv) {
  CLI::App app(
      "Measures what this machine can do at most, with loops that do nothing else, on the threads that the engine "
      "would "
      "use: read bandwidth, and operations per second (a multiplication and an addition are two). The best of several "
      "runs; 1 GiB of memory is used meanwhile.");
  std::optional<int64_t> num_threads;
  bool json = false;
  app.add_option("--threads", num_threads, "Threads (default: as the server chooses)")->check(CLI::Range(1, 1024));
  app.add_flag("--json", json, "Print a JSON object instead of a table");
  CLI11_PARSE(app, argc, argv);
  if (!num_threads) num_threads = ChooseNumThreads(ReadSystemLimits()).num_threads;
  nlohmann::json report;
  try {
    report = MeasureMachineLimits(*num_threads).ToJson();
    ThreadTeam team(*num_threads, 0);
    report["cached_gigabytes_per_second"] = MeasureReadBandwidth(team, 64 << 20) / 1e9;
  } catch (const std::bad_alloc&) {
    return ReportFailure(absl::ResourceExhaustedError("the probe needs 1 GiB of memory, which is not available"));
  }
  if (json) {
    std::printf("%s\n", report.dump(2).c_str());
  } else {
    PrintTable(report);
  }
  return 0;
}

}  // namespace quire
