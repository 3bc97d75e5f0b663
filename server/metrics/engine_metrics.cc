#include "server/metrics/engine_metrics.h"

#include <cstdint>
#include <utility>

#include "engine/base/strings.h"
#include "engine/base/version.h"

namespace quire {
namespace {

using prometheus::ClientMetric;
using prometheus::MetricFamily;
using prometheus::MetricType;
using Labels = std::vector<ClientMetric::Label>;

// A figure of CacheStats.
struct Figure {
  const char* name;
  const char* help;
  MetricType type;
  double (*value)(const v1::CacheStats&);
};

double KvCacheUse(const v1::CacheStats& stats) {
  return stats.blocks_total() == 0
             ? 0
             : static_cast<double>(stats.blocks_used()) / static_cast<double>(stats.blocks_total());
}

#define QUIRE_FIGURE_(field) [](const v1::CacheStats& stats) { return static_cast<double>(stats.field()); }

// vLLM's, with its label for the model.
constexpr Figure kVllmFigures[] = {
    {"vllm:num_requests_running", "Requests that run.", MetricType::Gauge, QUIRE_FIGURE_(requests_running)},
    {"vllm:num_requests_waiting", "Requests that wait to run.", MetricType::Gauge, QUIRE_FIGURE_(requests_waiting)},
    {"vllm:kv_cache_usage_perc", "Share of the KV cache's blocks that requests own; 1 is all of them.",
     MetricType::Gauge, KvCacheUse},
    {"vllm:prefix_cache_queries_total", "Prompt tokens that were looked up in the prefix cache.", MetricType::Counter,
     QUIRE_FIGURE_(prefix_query_tokens)},
    {"vllm:prefix_cache_hits_total", "Prompt tokens that were found in the prefix cache.", MetricType::Counter,
     QUIRE_FIGURE_(prefix_hit_tokens)},
    {"vllm:num_preemptions_total", "Requests whose blocks were taken away to be recomputed later.", MetricType::Counter,
     QUIRE_FIGURE_(preemptions)},
    {"vllm:generation_tokens_total", "Tokens that were sampled.", MetricType::Counter, QUIRE_FIGURE_(output_tokens)},
};

constexpr Figure kQuireFigures[] = {
    {"quire_memory_budget_bytes", "The hard limit of the process's memory.", MetricType::Gauge,
     QUIRE_FIGURE_(budget_bytes)},
    {"quire_process_resident_bytes", "What the kernel counts for the process.", MetricType::Gauge,
     QUIRE_FIGURE_(process_resident_bytes)},
    {"quire_process_peak_resident_bytes", "The most that the kernel ever counted for the process.", MetricType::Gauge,
     QUIRE_FIGURE_(process_peak_resident_bytes)},
    {"quire_kv_pool_bytes", "The KV cache's blocks, all of them.", MetricType::Gauge, QUIRE_FIGURE_(pool_bytes)},
    {"quire_kv_used_bytes", "Blocks that requests own.", MetricType::Gauge, QUIRE_FIGURE_(used_bytes)},
    {"quire_kv_cached_bytes", "Blocks that no request owns and that are kept for prompts that begin alike.",
     MetricType::Gauge, QUIRE_FIGURE_(cached_bytes)},
    {"quire_kv_free_bytes", "Blocks that hold nothing.", MetricType::Gauge, QUIRE_FIGURE_(free_bytes)},
    {"quire_kv_shared_bytes", "Blocks that several requests own.", MetricType::Gauge, QUIRE_FIGURE_(shared_bytes)},
    {"quire_kv_wasted_bytes", "What is empty of used blocks, because requests do not fill their last ones.",
     MetricType::Gauge, QUIRE_FIGURE_(wasted_bytes)},
    {"quire_kv_stored_tokens", "Tokens whose keys and values stand in used blocks.", MetricType::Gauge,
     QUIRE_FIGURE_(tokens_stored)},
    {"quire_queued_tokens", "Tokens of the requests that wait to run.", MetricType::Gauge,
     QUIRE_FIGURE_(queued_tokens)},
    {"quire_drained_tokens_per_second", "How fast the queue empties, measured while requests wait.", MetricType::Gauge,
     QUIRE_FIGURE_(drained_tokens_per_second)},
    {"quire_max_step_tokens", "The most tokens that a step may compute now.", MetricType::Gauge,
     QUIRE_FIGURE_(max_num_step_tokens)},
    {"quire_steps_total", "Steps, those that failed included.", MetricType::Counter, QUIRE_FIGURE_(steps)},
    {"quire_failed_steps_total", "Steps that failed.", MetricType::Counter, QUIRE_FIGURE_(failed_steps)},
    {"quire_prompt_tokens_computed_total", "Prompt tokens that were computed, again after preemptions.",
     MetricType::Counter, QUIRE_FIGURE_(prompt_tokens_computed)},
    {"quire_recomputed_tokens_total", "Tokens computed again because a preemption had dropped them.",
     MetricType::Counter, QUIRE_FIGURE_(recomputed_tokens)},
    {"quire_cache_evictions_total", "Cached blocks that were given to another content.", MetricType::Counter,
     QUIRE_FIGURE_(evictions)},
    {"quire_deferred_admissions_total", "Requests that had to queue because blocks were missing.", MetricType::Counter,
     QUIRE_FIGURE_(deferred_admissions)},
    {"quire_finished_requests_total", "Requests that the engine took and that have ended.", MetricType::Counter,
     QUIRE_FIGURE_(requests_finished)},
    {"quire_invariant_violations_total", "Violated invariants of allocator and scheduler; above 0 is a defect.",
     MetricType::Counter, QUIRE_FIGURE_(invariant_violations)},
};

#undef QUIRE_FIGURE_

ClientMetric Number(MetricType type, double value, Labels labels) {
  ClientMetric metric;
  metric.label = std::move(labels);
  (type == MetricType::Counter ? metric.counter.value : metric.gauge.value) = value;
  return metric;
}

MetricFamily ToFamily(const Figure& figure, const v1::CacheStats& stats, const Labels& labels) {
  return {figure.name, figure.help, figure.type, {Number(figure.type, figure.value(stats), labels)}};
}

// A number of one kind by each value of a label.
class FamilyByLabel {
 public:
  FamilyByLabel(const char* name, const char* help, MetricType type, const char* label)
      : family_{name, help, type, {}}, label_(label) {}

  FamilyByLabel& Add(const std::string& label_value, double value) {
    family_.metric.push_back(Number(family_.type, value, {{label_, label_value}}));
    return *this;
  }
  MetricFamily Take() { return std::move(family_); }

 private:
  MetricFamily family_;
  const char* const label_;
};

MetricFamily ToFamily(const char* name, const char* help, const v1::Histogram& histogram) {
  ClientMetric metric;
  uint64_t num_values = 0;
  for (int i = 0; i < histogram.counts_size(); ++i) {
    num_values += static_cast<uint64_t>(histogram.counts(i));
    // The text format adds the last one, +Inf, from the count of all.
    if (i < histogram.bounds_size()) metric.histogram.bucket.push_back({num_values, histogram.bounds(i)});
  }
  metric.histogram.sample_count = num_values;
  metric.histogram.sample_sum = histogram.sum();
  return {name, help, MetricType::Histogram, {metric}};
}

MetricFamily MemoryItems(const v1::CacheStats& stats) {
  FamilyByLabel items("quire_memory_item_bytes", "The memory sum, item by item: together the budget.",
                      MetricType::Gauge, "item");
  for (const v1::MemoryItem& item : stats.memory_items()) items.Add(item.name(), static_cast<double>(item.bytes()));
  return items.Take();
}

MetricFamily StepParts(const v1::StepPartSeconds& parts) {
  return FamilyByLabel("quire_step_part_seconds_total", "What the parts of steps took.", MetricType::Counter, "part")
      .Add("schedule", parts.schedule())
      .Add("execute", parts.execute())
      .Add("sample", parts.sample())
      .Add("emit", parts.emit())
      .Take();
}

// The labels that vLLM's readers look for; its blocks are a GPU's.
MetricFamily CacheConfigInfo(const std::string& model_name, const v1::CacheConfig& config) {
  Labels labels = {{"model_name", model_name},
                   {"block_size", StrCat(config.block_size_tokens())},
                   {"num_gpu_blocks", StrCat(config.blocks_total())},
                   {"cache_dtype", config.kv_cache_type()},
                   {"enable_prefix_caching", config.prefix_caching_enabled() ? "True" : "False"}};
  return {"vllm:cache_config_info",
          "What the KV cache is made of.",
          MetricType::Gauge,
          {Number(MetricType::Gauge, 1, std::move(labels))}};
}

}  // namespace

std::vector<MetricFamily> EngineMetrics(const std::string& model_name, const v1::CacheStats& stats,
                                        const v1::CacheConfig& config) {
  const Labels model = {{"model_name", model_name}};
  std::vector<MetricFamily> families;
  for (const Figure& figure : kVllmFigures) families.push_back(ToFamily(figure, stats, model));
  families.push_back(CacheConfigInfo(model_name, config));
  for (const Figure& figure : kQuireFigures) families.push_back(ToFamily(figure, stats, {}));
  families.push_back(MemoryItems(stats));
  families.push_back(StepParts(stats.step_part_seconds()));
  families.push_back(ToFamily("quire_step_seconds", "What steps took.", stats.step_seconds()));
  families.push_back(ToFamily("quire_step_tokens", "Tokens that steps computed.", stats.step_tokens()));
  families.push_back(ToFamily("quire_blocks_release_seconds",
                              "From a cancellation, disconnect, stop string or deadline to the request's blocks being "
                              "free.",
                              stats.release_seconds()));
  families.push_back(FamilyByLabel("quire_build_info", "The program.", MetricType::Gauge, "version")
                         .Add(std::string(kVersion), 1)
                         .Take());
  return families;
}

}  // namespace quire
