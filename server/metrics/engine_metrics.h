#pragma once

#include <prometheus/metric_family.h>

#include <string>
#include <vector>

#include "quire/v1/cache.pb.h"

namespace quire {

// GetCacheStats' figures and GetCacheConfig's as metrics: the same reading, so that both always agree. What vLLM counts
// in the same sense has its name.
std::vector<prometheus::MetricFamily> EngineMetrics(const std::string& model_name, const v1::CacheStats& stats,
                                                    const v1::CacheConfig& config);

}  // namespace quire
