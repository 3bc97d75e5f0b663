#pragma once

#include <prometheus/counter.h>
#include <prometheus/family.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>

#include <string>

#include "absl/status/status.h"
#include "engine/base/token_sink.h"

namespace quire {

// What requests went through, whatever protocol they came by: latencies, ends and refusals. Names and meanings are
// those of vLLM's metrics where vLLM has the metric, so that its dashboards fit. Thread-safe.
class RequestMetrics {
 public:
  // Metrics are made in `registry`, which must outlive this; all labels' values are there from the start, at 0.
  RequestMetrics(const std::string& model_name, prometheus::Registry* registry);

  // The first output tokens came this long after the request.
  void ObserveFirstToken(double seconds, int64_t num_prompt_tokens) const;
  // Output tokens came this long after those before them.
  void ObserveTokenGap(double seconds) const;
  // The engine took the request and has ended it.
  void ObserveEnd(const GenerationResult& result) const;
  // The request ended with `status`, an error, before the engine took it.
  void CountRefusal(const absl::Status& status) const;

 private:
  prometheus::Family<prometheus::Counter>& successes_;
  prometheus::Family<prometheus::Counter>& refusals_;
  const std::string model_name_;
  prometheus::Counter& prompt_tokens_;
  prometheus::Histogram& first_token_seconds_;
  prometheus::Histogram& token_gap_seconds_;
  prometheus::Histogram& total_seconds_;
  prometheus::Histogram& queue_seconds_;
};

}  // namespace quire
