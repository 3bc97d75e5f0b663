#include "server/metrics/metrics.h"

#include <prometheus/text_serializer.h>

#include <utility>
#include <vector>

#include "engine/base/status.h"
#include "server/metrics/engine_metrics.h"

namespace quire {

Metrics::Metrics(std::string model_name, v1::CacheConfig config,
                 std::function<absl::StatusOr<v1::CacheStats>()> read_stats)
    : model_name_(std::move(model_name)),
      config_(std::move(config)),
      read_stats_(std::move(read_stats)),
      requests_(model_name_, &registry_) {}

absl::StatusOr<std::string> Metrics::Text() const {
  QUIRE_ASSIGN_OR_RETURN(const v1::CacheStats stats, read_stats_());
  std::vector<prometheus::MetricFamily> families = EngineMetrics(model_name_, stats, config_);
  for (prometheus::MetricFamily& family : registry_.Collect()) families.push_back(std::move(family));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace quire
