#include "bench/report.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <numeric>
#include <vector>

namespace quire {
namespace {

double Share(double part, double whole) { return whole > 0 ? part / whole : 0; }

// The smallest value that at least `share` of the values do not pass; 0 without values.
double Percentile(const std::vector<double>& sorted, double share) {
  if (sorted.empty()) return 0;
  const auto rank = static_cast<size_t>(std::ceil(share * static_cast<double>(sorted.size())));
  return sorted[std::max<size_t>(rank, 1) - 1];
}

nlohmann::json Distribution(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const double sum = std::accumulate(values.begin(), values.end(), 0.0);
  return {{"mean", Share(sum, static_cast<double>(values.size()))},
          {"p50", Percentile(values, 0.5)},
          {"p99", Percentile(values, 0.99)}};
}

// The waits of some of the requests, a tenant's say.
class WaitCollector {
 public:
  explicit WaitCollector(const LatencyLimits& limits) : limits_(limits) {}

  void Add(const RequestOutcome& outcome) {
    ++num_requests_;
    num_output_tokens_ += outcome.num_output_tokens;
    num_preemptions_ += outcome.num_preemptions;
    if (outcome.first_scheduled_seconds) {
      queue_seconds_.push_back(*outcome.first_scheduled_seconds - outcome.arrival_seconds);
    }
    if (outcome.first_token_seconds) {
      ttft_seconds_.push_back(*outcome.first_token_seconds - outcome.arrival_seconds);
    }
    switch (outcome.end) {
      case RequestEnd::kFinished: AddFinished(outcome); break;
      case RequestEnd::kCancelled: ++num_cancelled_; break;
      case RequestEnd::kRefused: ++num_refused_; break;
    }
  }

  nlohmann::json ToJson(double seconds) const {
    return {{"requests", num_requests_},
            {"finished", num_finished_},
            {"cancelled", num_cancelled_},
            {"refused", num_refused_},
            {"output_tokens", num_output_tokens_},
            {"output_tokens_per_second", Share(static_cast<double>(num_output_tokens_), seconds)},
            {"preemptions", num_preemptions_},
            {"queue_seconds", Distribution(queue_seconds_)},
            {"ttft_seconds", Distribution(ttft_seconds_)},
            {"tpot_seconds", Distribution(tpot_seconds_)},
            {"goodput_requests_per_second", Share(static_cast<double>(num_good_), seconds)}};
  }

 private:
  void AddFinished(const RequestOutcome& outcome) {
    ++num_finished_;
    double tpot = 0;
    if (outcome.num_output_tokens > 1) {
      tpot = (outcome.end_seconds - *outcome.first_token_seconds) / static_cast<double>(outcome.num_output_tokens - 1);
      tpot_seconds_.push_back(tpot);
    }
    const double ttft = *outcome.first_token_seconds - outcome.arrival_seconds;
    if (ttft <= limits_.ttft_seconds && tpot <= limits_.tpot_seconds) ++num_good_;
  }

  const LatencyLimits& limits_;
  int64_t num_requests_ = 0;
  int64_t num_finished_ = 0;
  int64_t num_cancelled_ = 0;
  int64_t num_refused_ = 0;
  int64_t num_output_tokens_ = 0;
  int64_t num_preemptions_ = 0;
  int64_t num_good_ = 0;
  std::vector<double> queue_seconds_;
  std::vector<double> ttft_seconds_;
  std::vector<double> tpot_seconds_;
};

// Of the prompt tokens of requests that ran, those found at the first admission: what a preempted request finds of
// itself again is none.
double PrefixHitRatio(const Trace& trace, const SimulationResult& result) {
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_tokens = 0;
  for (size_t i = 0; i < trace.size(); ++i) {
    if (!result.requests[i].first_scheduled_seconds) continue;
    num_prompt_tokens += trace[i].prompt_tokens;
    num_cached_tokens += result.requests[i].num_cached_tokens;
  }
  return Share(static_cast<double>(num_cached_tokens), static_cast<double>(num_prompt_tokens));
}

nlohmann::json PoolReport(const Trace& trace, const SimulationConfig& config, const SimulationResult& result,
                          int64_t kv_bytes_per_token) {
  const auto num_blocks = static_cast<double>(config.cache.num_blocks);
  const double mean_wasted_slots = Share(result.wasted_slot_seconds, result.seconds);
  return {
      {"blocks", config.cache.num_blocks},
      {"block_size", config.cache.block_size},
      {"mean_used_ratio", Share(result.used_block_seconds, result.seconds * num_blocks)},
      {"peak_used_ratio", static_cast<double>(result.final_usage.peak_used_blocks) / num_blocks},
      {"mean_wasted_bytes", mean_wasted_slots * static_cast<double>(kv_bytes_per_token)},
      {"wasted_share_of_used",
       Share(result.wasted_slot_seconds, result.used_block_seconds * static_cast<double>(config.cache.block_size))},
      {"prefix_hit_ratio", PrefixHitRatio(trace, result)},
      {"evictions", result.final_usage.num_evictions},
  };
}

void PrintWaits(const std::string& name, const nlohmann::json& waits) {
  const auto seconds = [&](const char* what, const char* which) { return waits[what][which].get<double>(); };
  std::printf("%-12.12s %8lld %8lld %8lld %10.1f %8.2f %8.2f %8.2f %8.2f %8.1f %8.1f %8.2f\n", name.c_str(),
              waits["requests"].get<long long>(), waits["finished"].get<long long>(),
              waits["preemptions"].get<long long>(), waits["output_tokens_per_second"].get<double>(),
              seconds("queue_seconds", "mean"), seconds("ttft_seconds", "mean"), seconds("ttft_seconds", "p50"),
              seconds("ttft_seconds", "p99"), 1000 * seconds("tpot_seconds", "mean"),
              1000 * seconds("tpot_seconds", "p99"), waits["goodput_requests_per_second"].get<double>());
}

}  // namespace

nlohmann::json MakeReport(const Trace& trace, const SimulationConfig& config, const SimulationResult& result,
                          const LatencyLimits& limits, int64_t kv_bytes_per_token) {
  WaitCollector all(limits);
  std::map<std::string, WaitCollector> by_tenant;
  for (size_t i = 0; i < trace.size(); ++i) {
    all.Add(result.requests[i]);
    by_tenant.try_emplace(trace[i].tenant, limits).first->second.Add(result.requests[i]);
  }
  const int64_t num_useful_tokens = result.num_computed_tokens - result.num_recomputed_tokens;
  nlohmann::json report = {{"seconds", result.seconds},
                           {"steps", result.num_steps},
                           {"computed_tokens", result.num_computed_tokens},
                           {"recomputed_tokens", result.num_recomputed_tokens},
                           {"recomputed_share_of_useful", Share(static_cast<double>(result.num_recomputed_tokens),
                                                                static_cast<double>(num_useful_tokens))},
                           {"preemptions", result.num_preemptions},
                           {"ttft_limit_seconds", limits.ttft_seconds},
                           {"tpot_limit_seconds", limits.tpot_seconds},
                           {"pool", PoolReport(trace, config, result, kv_bytes_per_token)},
                           {"all", all.ToJson(result.seconds)},
                           {"tenants", nlohmann::json::object()}};
  for (const auto& [tenant, waits] : by_tenant) report["tenants"][tenant] = waits.ToJson(result.seconds);
  return report;
}

void PrintReport(const nlohmann::json& report) {
  const nlohmann::json& pool = report["pool"];
  std::printf("%.1f s of virtual time, %lld steps, %lld tokens computed\n", report["seconds"].get<double>(),
              report["steps"].get<long long>(), report["computed_tokens"].get<long long>());
  std::printf("pool        %lld blocks of %lld tokens: used %.1f %% mean, %.1f %% peak\n",
              pool["blocks"].get<long long>(), pool["block_size"].get<long long>(),
              100 * pool["mean_used_ratio"].get<double>(), 100 * pool["peak_used_ratio"].get<double>());
  std::printf("waste       %.2f MiB mean, %.1f %% of the used blocks' slots hold no token\n",
              pool["mean_wasted_bytes"].get<double>() / (1 << 20), 100 * pool["wasted_share_of_used"].get<double>());
  std::printf("prefixes    %.1f %% of prompt tokens found, %lld evictions\n",
              100 * pool["prefix_hit_ratio"].get<double>(), pool["evictions"].get<long long>());
  std::printf("preemptions %lld, %lld tokens computed again: %.2f %% of the useful ones\n",
              report["preemptions"].get<long long>(), report["recomputed_tokens"].get<long long>(),
              100 * report["recomputed_share_of_useful"].get<double>());
  std::printf("goodput     requests a second with TTFT <= %g s and TPOT <= %g s\n\n",
              report["ttft_limit_seconds"].get<double>(), report["tpot_limit_seconds"].get<double>());
  std::printf("%-12s %8s %8s %8s %10s %8s %8s %8s %8s %8s %8s %8s\n", "tenant", "requests", "finished", "preempt",
              "tokens/s", "queue s", "TTFT s", "p50", "p99", "TPOT ms", "p99", "goodput");
  PrintWaits("all", report["all"]);
  for (const auto& [tenant, waits] : report["tenants"].items()) PrintWaits(tenant, waits);
}

}  // namespace quire
