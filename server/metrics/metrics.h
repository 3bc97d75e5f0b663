#pragma once

#include <prometheus/registry.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "quire/v1/cache.pb.h"
#include "server/metrics/request_metrics.h"

namespace quire {

// All that a Prometheus server may ask of this one.
class Metrics {
 public:
  // `read_stats` is called for each Text, on its thread.
  Metrics(std::string model_name, v1::CacheConfig config, std::function<absl::StatusOr<v1::CacheStats>()> read_stats);

  const RequestMetrics& requests() const { return requests_; }

  // In the text format 0.0.4: https://prometheus.io/docs/instrumenting/exposition_formats/. Errors are `read_stats`'s.
  absl::StatusOr<std::string> Text() const;

 private:
  const std::string model_name_;
  const v1::CacheConfig config_;
  const std::function<absl::StatusOr<v1::CacheStats>()> read_stats_;
  prometheus::Registry registry_;
  const RequestMetrics requests_;
};

}  // namespace quire
