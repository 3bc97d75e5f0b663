#include "client/load_report.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "client/failure.h"
#include "client/number_format.h"
#include "client/terminal_text.h"
#include "client/text_table.h"

namespace quire {
namespace {

using Measurements = std::vector<const LoadMeasurement*>;

// Nearest rank: the least value that at least this share of all are not above.
double Percentile(const std::vector<double>& sorted, double share) {
  const double rank = std::ceil(share * static_cast<double>(sorted.size()));
  return sorted[static_cast<size_t>(std::max(rank, 1.0)) - 1];
}

Json Distribution(std::vector<double> values) {
  if (values.empty()) {
    return {{"count", 0}};
  }
  std::sort(values.begin(), values.end());
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return {{"count", values.size()},
          {"mean", sum / static_cast<double>(values.size())},
          {"p50", Percentile(values, 0.5)},
          {"p90", Percentile(values, 0.9)},
          {"p95", Percentile(values, 0.95)},
          {"p99", Percentile(values, 0.99)},
          {"max", values.back()}};
}

bool IsGood(const LoadMeasurement& measurement, const LatencyLimits& limits) {
  if (measurement.status != grpc::StatusCode::OK || !measurement.first_token_seconds) {
    return false;
  }
  const std::optional<double> per_token = measurement.SecondsPerOutputToken();
  return (!limits.first_token_seconds || *measurement.first_token_seconds <= *limits.first_token_seconds) &&
         (!limits.seconds_per_output_token || !per_token || *per_token <= *limits.seconds_per_output_token);
}

Json Latencies(const Measurements& measurements) {
  std::vector<double> first_token;
  std::vector<double> gaps;
  std::vector<double> per_token;
  std::vector<double> total;
  for (const LoadMeasurement* measurement : measurements) {
    if (measurement->status != grpc::StatusCode::OK) {
      continue;
    }
    if (measurement->first_token_seconds) {
      first_token.push_back(*measurement->first_token_seconds);
    }
    gaps.insert(gaps.end(), measurement->gap_seconds.begin(), measurement->gap_seconds.end());
    if (const auto seconds = measurement->SecondsPerOutputToken()) {
      per_token.push_back(*seconds);
    }
    total.push_back(measurement->total_seconds);
  }
  return {{"time_to_first_token_seconds", Distribution(std::move(first_token))},
          {"inter_token_seconds", Distribution(std::move(gaps))},
          {"seconds_per_output_token", Distribution(std::move(per_token))},
          {"total_seconds", Distribution(std::move(total))}};
}

Json Summary(const Measurements& measurements, double seconds, const LatencyLimits& limits) {
  std::map<std::string, int64_t> by_status;
  int64_t num_cancelled = 0;
  int64_t num_good = 0;
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;
  int64_t num_output_tokens = 0;
  for (const LoadMeasurement* measurement : measurements) {
    const bool cancelled = measurement->cancelled_by_client && measurement->status == grpc::StatusCode::CANCELLED;
    cancelled ? ++num_cancelled : ++by_status[std::string(CodeName(measurement->status))];
    num_good += IsGood(*measurement, limits) ? 1 : 0;
    num_prompt_tokens += measurement->num_prompt_tokens;
    num_cached_tokens += measurement->num_cached_prompt_tokens;
    num_output_tokens += measurement->num_output_tokens;
  }
  Json summary = {{"requests", measurements.size()},
                  {"by_status", by_status},
                  {"cancelled_by_client", num_cancelled},
                  {"seconds", seconds},
                  {"prompt_tokens", num_prompt_tokens},
                  {"cached_prompt_tokens", num_cached_tokens},
                  {"output_tokens", num_output_tokens},
                  {"output_tokens_per_second", static_cast<double>(num_output_tokens) / std::max(seconds, 1e-9)},
                  {"good_requests", num_good},
                  {"good_requests_per_second", static_cast<double>(num_good) / std::max(seconds, 1e-9)}};
  summary.update(Latencies(measurements));
  return summary;
}

std::vector<std::string> LatencyRow(const std::string& name, const Json& distribution) {
  if (distribution["count"] == 0) {
    return {name, "-"};
  }
  std::vector<std::string> row = {name};
  for (const char* key : {"mean", "p50", "p90", "p95", "p99", "max"}) {
    row.push_back(FormatDecimal(distribution[key].get<double>() * 1000, 1));
  }
  return row;
}

std::string RenderSummary(const Json& summary) {
  std::string text = FormatCount(summary["requests"].get<int64_t>()) + " requests in " +
                     FormatDecimal(summary["seconds"].get<double>(), 1) + " s, " +
                     FormatDecimal(summary["output_tokens_per_second"].get<double>(), 1) + " output tokens/s, " +
                     FormatDecimal(summary["good_requests_per_second"].get<double>(), 2) + " good requests/s\n";
  for (const auto& [status, count] : summary["by_status"].items()) {
    text += "  " + status + " " + FormatCount(count.get<int64_t>());
  }
  text += "  cancelled by this client " + FormatCount(summary["cancelled_by_client"].get<int64_t>()) +
          ", prompt tokens " + FormatCount(summary["prompt_tokens"].get<int64_t>()) + " (" +
          FormatCount(summary["cached_prompt_tokens"].get<int64_t>()) + " cached)\n";
  return text + RenderTable({{"milliseconds", "mean", "p50", "p90", "p95", "p99", "max"},
                             LatencyRow("time to first token", summary["time_to_first_token_seconds"]),
                             LatencyRow("between tokens", summary["inter_token_seconds"]),
                             LatencyRow("per output token", summary["seconds_per_output_token"]),
                             LatencyRow("whole request", summary["total_seconds"])});
}

}  // namespace

Json LoadReport(const LoadResult& result, const LatencyLimits& limits) {
  Measurements all;
  std::map<std::string, Measurements> by_tenant;
  for (const LoadMeasurement& measurement : result.measurements) {
    all.push_back(&measurement);
    by_tenant[measurement.tenant].push_back(&measurement);
  }
  Json report = Summary(all, result.seconds, limits);
  if (by_tenant.size() > 1) {
    for (const auto& [tenant, measurements] : by_tenant) {
      report["tenants"][tenant] = Summary(measurements, result.seconds, limits);
    }
  }
  return report;
}

std::string RenderLoadReport(const Json& report) {
  std::string text = RenderSummary(report);
  if (report.contains("tenants")) {
    for (const auto& [tenant, summary] : report["tenants"].items()) {
      text += "\ntenant " + EscapeToOneLine(tenant) + ": " + RenderSummary(summary);
    }
  }
  return text;
}

}  // namespace quire
