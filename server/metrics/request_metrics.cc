#include "server/metrics/request_metrics.h"

#include "server/error_reason.h"

namespace quire {
namespace {

using Buckets = prometheus::Histogram::BucketBoundaries;

const Buckets kLatencyBuckets = {0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 40, 80, 160, 320, 640};
const Buckets kTokenGapBuckets = {0.001, 0.0025, 0.005, 0.01, 0.02, 0.03, 0.04, 0.05, 0.075, 0.1,
                                  0.15,  0.2,    0.3,   0.4,  0.5,  0.75, 1,    2.5,  5,     10};

// As vLLM names the ends of requests.
constexpr const char* kStop = "stop";
constexpr const char* kLength = "length";
constexpr const char* kAbort = "abort";
constexpr const char* kError = "error";

const char* EndOf(const GenerationResult& result) {
  if (result.status.ok()) return result.finish_reason == FinishReason::kLength ? kLength : kStop;
  const bool is_abort = absl::IsCancelled(result.status) || absl::IsDeadlineExceeded(result.status);
  return is_abort ? kAbort : kError;
}

}  // namespace

RequestMetrics::RequestMetrics(const std::string& model_name, prometheus::Registry* registry)
    : successes_(prometheus::BuildCounter()
                     .Name("vllm:request_success_total")
                     .Help("Requests that the engine took and that have ended, by how.")
                     .Register(*registry)),
      refusals_(prometheus::BuildCounter()
                    .Name("quire_refused_requests_total")
                    .Help("Requests that ended with an error before the engine took them, by its reason.")
                    .Register(*registry)),
      model_name_(model_name),
      prompt_tokens_(prometheus::BuildCounter()
                         .Name("vllm:prompt_tokens_total")
                         .Help("Tokens of the prompts whose first output token has come, cached ones too.")
                         .Register(*registry)
                         .Add({{"model_name", model_name}})),
      first_token_seconds_(prometheus::BuildHistogram()
                               .Name("vllm:time_to_first_token_seconds")
                               .Help("From a request's arrival to its first output token.")
                               .Register(*registry)
                               .Add({{"model_name", model_name}}, kLatencyBuckets)),
      token_gap_seconds_(prometheus::BuildHistogram()
                             .Name("vllm:inter_token_latency_seconds")
                             .Help("From a request's output token to its next one.")
                             .Register(*registry)
                             .Add({{"model_name", model_name}}, kTokenGapBuckets)),
      total_seconds_(prometheus::BuildHistogram()
                         .Name("vllm:e2e_request_latency_seconds")
                         .Help("From a request's arrival to its end.")
                         .Register(*registry)
                         .Add({{"model_name", model_name}}, kLatencyBuckets)),
      queue_seconds_(prometheus::BuildHistogram()
                         .Name("vllm:request_queue_time_seconds")
                         .Help("From a request's arrival to its first step, or to its end if it had none.")
                         .Register(*registry)
                         .Add({{"model_name", model_name}}, kLatencyBuckets)) {
  for (const char* end : {kStop, kLength, kAbort, kError}) {
    successes_.Add({{"model_name", model_name_}, {"finished_reason", end}});
  }
  for (const char* reason : kErrorReasons) refusals_.Add({{"reason", reason}});
}

void RequestMetrics::ObserveFirstToken(double seconds, int64_t num_prompt_tokens) const {
  first_token_seconds_.Observe(seconds);
  prompt_tokens_.Increment(static_cast<double>(num_prompt_tokens));
}

void RequestMetrics::ObserveTokenGap(double seconds) const { token_gap_seconds_.Observe(seconds); }

void RequestMetrics::ObserveEnd(const GenerationResult& result) const {
  // Add gives the counter that is there already.
  successes_.Add({{"model_name", model_name_}, {"finished_reason", EndOf(result)}}).Increment();
  total_seconds_.Observe(result.timings.total_seconds);
  queue_seconds_.Observe(result.timings.queue_seconds);
}

void RequestMetrics::CountRefusal(const absl::Status& status) const {
  refusals_.Add({{"reason", ReasonOf(status)}}).Increment();
}

}  // namespace quire
