#include "bench/speed_report.h"

#include <algorithm>
#include <cstdio>
#include <string>

#include "bench/percentile.h"

namespace quire {
namespace {

// Null if there is no limit.
nlohmann::json ShareOf(double rate, std::optional<double> limit) {
  if (!limit || *limit <= 0) return nullptr;
  return rate / *limit;
}

// Bytes and operations per second, and their shares of the limits.
void AddRates(double bytes_per_second, double ops_per_second, std::optional<double> bytes_limit,
              std::optional<double> ops_limit, nlohmann::json* row) {
  (*row)["gigabytes_per_second"] = bytes_per_second / 1e9;
  (*row)["bandwidth_share"] = ShareOf(bytes_per_second, bytes_limit);
  (*row)["gigaops_per_second"] = ops_per_second / 1e9;
  (*row)["ops_share"] = ShareOf(ops_per_second, ops_limit);
}

nlohmann::json PartRow(std::string_view name, double seconds, const RunTotals& totals) {
  return {{"part", name},
          {"ms_per_step", 1e3 * seconds / static_cast<double>(totals.work.num_steps)},
          {"share", seconds / totals.seconds}};
}

// The linear layers' limit is that of their compute type, attention's that of f32.
nlohmann::json ProfileRows(const ProfiledRun& run, const DecoderSizes& sizes, std::optional<double> bytes_limit,
                           std::optional<double> linear_limit, std::optional<double> attention_limit) {
  nlohmann::json rows = nlohmann::json::array();
  const PartCosts costs = CostOf(sizes, run.totals.work);
  double other_seconds = run.totals.seconds - run.totals.sampling_seconds;
  for (size_t i = 0; i < kNumStepParts; ++i) {
    const auto part = static_cast<StepPart>(i);
    const double seconds = run.profile.seconds(part);
    other_seconds -= seconds;
    nlohmann::json row = PartRow(ToString(part), seconds, run.totals);
    if (costs[i].ops > 0 && seconds > 0) {
      AddRates(costs[i].bytes / seconds, costs[i].ops / seconds, bytes_limit,
               part == StepPart::kAttention ? attention_limit : linear_limit, &row);
    }
    rows.push_back(std::move(row));
  }
  rows.push_back(PartRow("sampling", run.totals.sampling_seconds, run.totals));
  rows.push_back(PartRow("other", other_seconds, run.totals));
  return rows;
}

void AddMixed(const SpeedResult& result, nlohmann::json* row) {
  std::vector<double> gaps;
  for (const RunTotals& run : result.runs) gaps.insert(gaps.end(), run.token_gaps.begin(), run.token_gaps.end());
  (*row)["token_gap_p50_ms"] = 1e3 * Percentile(gaps, 0.5);
  (*row)["token_gap_p99_ms"] = 1e3 * Percentile(gaps, 0.99);
  (*row)["token_gap_max_ms"] = 1e3 * *std::ranges::max_element(gaps);
  (*row)["decode_tokens_per_second"] =
      result.Median([](const RunTotals& run) { return static_cast<double>(run.num_output_tokens) / run.seconds; });
  (*row)["prefill_tokens_per_second"] =
      result.Median([](const RunTotals& run) { return static_cast<double>(run.num_prefill_tokens) / run.seconds; });
}

// A share as "(73 %)", or nothing.
std::string Percent(const nlohmann::json& share) {
  if (share.is_null()) return "";
  char text[16];
  std::snprintf(text, sizeof(text), "(%.0f %%)", 100 * share.get<double>());
  return text;
}

void PrintRates(const nlohmann::json& row) {
  std::printf(" %8.1f %-7s %9.1f %-7s", row["gigabytes_per_second"].get<double>(),
              Percent(row["bandwidth_share"]).c_str(), row["gigaops_per_second"].get<double>(),
              Percent(row["ops_share"]).c_str());
}

void PrintLimits(const nlohmann::json& limits) {
  const nlohmann::json& matrix = limits["matrix_bf16_gigaops_per_second"];
  std::printf(
      "limits: reading %.1f GB/s (as many bytes as the weights have: %.1f), f32 %.0f, bf16 %.0f, int8 %.0f GOP/s",
      limits["memory_gigabytes_per_second"].get<double>(), limits["weights_gigabytes_per_second"].get<double>(),
      limits["f32_gigaops_per_second"].get<double>(), limits["bf16_gigaops_per_second"].get<double>(),
      limits["int8_gigaops_per_second"].get<double>());
  if (!matrix.is_null()) std::printf(", matrix bf16 %.0f", matrix.get<double>());
  std::printf("\n");
}

void PrintProfile(const nlohmann::json& rows) {
  std::printf("    %-16s %9s %7s %8s %-7s %9s\n", "part", "ms/step", "share", "GB/s", "", "GOP/s");
  for (const auto& row : rows) {
    std::printf("    %-16s %9.3f %6.1f%%", row["part"].get<std::string>().c_str(), row["ms_per_step"].get<double>(),
                100 * row["share"].get<double>());
    if (row.contains("gigabytes_per_second")) PrintRates(row);
    std::printf("\n");
  }
}

}  // namespace

nlohmann::json ToJson(const SpeedLimits& limits) {
  nlohmann::json json = limits.machine.ToJson();
  json["weights_gigabytes_per_second"] = limits.weight_read_bytes_per_second / 1e9;
  return json;
}

nlohmann::json ToJson(const SpeedResult& result, const DecoderSizes& sizes, const std::string& compute_type,
                      const std::optional<SpeedLimits>& limits) {
  std::optional<double> bytes_limit;
  std::optional<double> linear_limit;
  std::optional<double> attention_limit;
  if (limits) {
    bytes_limit = limits->weight_read_bytes_per_second;
    linear_limit = limits->machine.OpsPerSecond(compute_type);
    attention_limit = limits->machine.OpsPerSecond("f32");
  }
  std::vector<double> speeds;
  for (const RunTotals& run : result.runs) speeds.push_back(run.tokens_per_second());
  nlohmann::json row = {{"phase", result.phase},
                        {"batch", result.batch},
                        {"context", result.context},
                        {"prompt_tokens", result.prompt_tokens},
                        {"tokens_per_second", Median(speeds)},
                        {"min", *std::ranges::min_element(speeds)},
                        {"max", *std::ranges::max_element(speeds)}};
  row["ms_per_step"] =
      result.Median([](const RunTotals& run) { return 1e3 * run.seconds / static_cast<double>(run.work.num_steps); });
  AddRates(result.Median([&](const RunTotals& run) { return Sum(CostOf(sizes, run.work)).bytes / run.seconds; }),
           result.Median([&](const RunTotals& run) { return Sum(CostOf(sizes, run.work)).ops / run.seconds; }),
           bytes_limit, linear_limit, &row);
  if (result.phase == "mixed") AddMixed(result, &row);
  if (result.profiled) {
    row["profile"] = ProfileRows(*result.profiled, sizes, bytes_limit, linear_limit, attention_limit);
  }
  return row;
}

void PrintSpeedReport(const nlohmann::json& report) {
  std::printf("weights %s (%.1f MiB read a step), computed in %s (%s), KV cache %s, %lld threads\n",
              report["weight_type"].get<std::string>().c_str(), report["weight_mebibytes_per_step"].get<double>(),
              report["compute_type"].get<std::string>().c_str(),
              report["compute_type_reason"].get<std::string>().c_str(),
              report["kv_cache_dtype"].get<std::string>().c_str(), report["num_threads"].get<long long>());
  if (!report["limits"].is_null()) PrintLimits(report["limits"]);
  std::printf("%-8s %6s %8s %10s %10s %10s %9s %8s %-7s %9s\n", "phase", "batch", "context", "tokens/s", "min", "max",
              "ms/step", "GB/s", "", "GOP/s");
  for (const auto& row : report["results"]) {
    std::printf("%-8s %6lld %8lld %10.1f %10.1f %10.1f %9.2f", row["phase"].get<std::string>().c_str(),
                row["batch"].get<long long>(), row["context"].get<long long>(), row["tokens_per_second"].get<double>(),
                row["min"].get<double>(), row["max"].get<double>(), row["ms_per_step"].get<double>());
    PrintRates(row);
    std::printf("\n");
    if (row.contains("token_gap_p99_ms")) {
      std::printf(
          "    prompts of %lld: decode %.1f and prefill %.1f tokens/s; gaps between tokens p50 %.1f ms, p99 %.1f, "
          "max %.1f\n",
          row["prompt_tokens"].get<long long>(), row["decode_tokens_per_second"].get<double>(),
          row["prefill_tokens_per_second"].get<double>(), row["token_gap_p50_ms"].get<double>(),
          row["token_gap_p99_ms"].get<double>(), row["token_gap_max_ms"].get<double>());
    }
    if (row.contains("profile")) PrintProfile(row["profile"]);
  }
}

}  // namespace quire
