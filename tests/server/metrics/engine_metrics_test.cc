// Figures of CacheStats as metrics.
#include "server/metrics/engine_metrics.h"

#include <prometheus/text_serializer.h>

#include <catch2/catch_test_macros.hpp>
#include <map>
#include <string>

#include "tests/server/metrics/metrics_text.h"

namespace quire::testing {
namespace {

std::map<std::string, double> Exported(const v1::CacheStats& stats, const v1::CacheConfig& config = {}) {
  return ParseMetrics(prometheus::TextSerializer().Serialize(EngineMetrics("m", stats, config)));
}

TEST_CASE("bytes and counters are CacheStats' own") {
  v1::CacheStats stats;
  stats.set_budget_bytes(1000);
  stats.set_pool_bytes(700);
  stats.set_used_bytes(300);
  stats.set_cached_bytes(200);
  stats.set_wasted_bytes(20);
  stats.set_blocks_total(10);
  stats.set_blocks_used(4);
  stats.set_requests_running(3);
  stats.set_requests_waiting(2);
  stats.set_preemptions(1);
  stats.set_invariant_violations(5);
  v1::MemoryItem* item = stats.add_memory_items();
  item->set_name("weights");
  item->set_bytes(300);
  stats.mutable_step_part_seconds()->set_execute(1.5);
  std::map<std::string, double> metrics = Exported(stats);
  CHECK(metrics.at("quire_memory_budget_bytes") == 1000);
  CHECK(metrics.at("quire_kv_pool_bytes") == 700);
  CHECK(metrics.at("quire_kv_used_bytes") == 300);
  CHECK(metrics.at("quire_kv_cached_bytes") == 200);
  CHECK(metrics.at("quire_kv_wasted_bytes") == 20);
  CHECK(metrics.at("quire_memory_item_bytes{item=\"weights\"}") == 300);
  CHECK(metrics.at("quire_step_part_seconds_total{part=\"execute\"}") == 1.5);
  CHECK(metrics.at("quire_invariant_violations_total") == 5);
  CHECK(metrics.at("vllm:num_requests_running{model_name=\"m\"}") == 3);
  CHECK(metrics.at("vllm:num_requests_waiting{model_name=\"m\"}") == 2);
  CHECK(metrics.at("vllm:num_preemptions_total{model_name=\"m\"}") == 1);
  CHECK(metrics.at("vllm:kv_cache_usage_perc{model_name=\"m\"}") == 0.4);
}

TEST_CASE("the cache's make is told as vLLM tells it") {
  v1::CacheConfig config;
  config.set_block_size_tokens(16);
  config.set_blocks_total(10);
  config.set_kv_cache_type("int8");
  config.set_prefix_caching_enabled(true);
  CHECK(Exported({}, config)
            .at("vllm:cache_config_info{model_name=\"m\",block_size=\"16\",num_gpu_blocks=\"10\","
                "cache_dtype=\"int8\",enable_prefix_caching=\"True\"}") == 1);
}

TEST_CASE("a histogram's counts add up, and end with all values") {
  v1::CacheStats stats;
  v1::Histogram* seconds = stats.mutable_step_seconds();
  for (const double bound : {0.5, 1.0}) seconds->add_bounds(bound);
  for (const int64_t count : {3, 2, 4}) seconds->add_counts(count);
  seconds->set_sum(20);
  std::map<std::string, double> metrics = Exported(stats);
  CHECK(metrics.at("quire_step_seconds_bucket{le=\"0.5\"}") == 3);
  CHECK(metrics.at("quire_step_seconds_bucket{le=\"1\"}") == 5);
  CHECK(metrics.at("quire_step_seconds_bucket{le=\"+Inf\"}") == 9);
  CHECK(metrics.at("quire_step_seconds_count") == 9);
  CHECK(metrics.at("quire_step_seconds_sum") == 20);
}

}  // namespace
}  // namespace quire::testing
