#include "server/grpc/load_report.h"

#include <algorithm>
#include <chrono>
#include <string>
#include <string_view>

#include "xds/data/orca/v3/orca_load_report.pb.h"

namespace quire {
namespace {

using grpc::experimental::InterceptionHookPoints;

constexpr char kTrailerKey[] = "endpoint-load-metrics-bin";
constexpr Duration kRateWindow = std::chrono::seconds(5);

class LoadReporter : public grpc::experimental::Interceptor {
 public:
  LoadReporter(const EngineLoop* engine, EventRate* call_rate) : engine_(engine), call_rate_(call_rate) {}

  void Intercept(grpc::experimental::InterceptorBatchMethods* methods) override {
    if (methods->QueryInterceptionHookPoint(InterceptionHookPoints::PRE_SEND_STATUS)) {
      methods->GetSendTrailingMetadata()->emplace(kTrailerKey,
                                                  SerializeLoadReport(engine_->load(), call_rate_->Count()));
    }
    methods->Proceed();
  }

 private:
  const EngineLoop* const engine_;
  EventRate* const call_rate_;
};

}  // namespace

std::string SerializeLoadReport(const EngineLoad& load, double calls_per_second) {
  xds::data::orca::v3::OrcaLoadReport report;
  report.set_mem_utilization(load.kv_cache_use);
  report.set_rps_fractional(calls_per_second);
  // Seats or blocks, whichever is scarcer; and those who wait come on top.
  const auto num_seats = static_cast<double>(load.max_running_requests);
  const double use = std::max(load.kv_cache_use, static_cast<double>(load.num_running_requests) / num_seats);
  report.set_application_utilization(use + static_cast<double>(load.num_waiting_requests) / num_seats);
  auto& metrics = *report.mutable_named_metrics();
  metrics["kv_cache_usage"] = load.kv_cache_use;
  metrics["requests_running"] = static_cast<double>(load.num_running_requests);
  metrics["requests_waiting"] = static_cast<double>(load.num_waiting_requests);
  return report.SerializeAsString();
}

EventRate::EventRate(const Clock* clock) : clock_(clock), window_begin_(clock->Now()) {}

double EventRate::Count() {
  const std::lock_guard lock(mutex_);
  const Duration passed = clock_->Now() - window_begin_;
  if (passed >= kRateWindow) {
    last_rate_ = static_cast<double>(num_in_window_) / ToSeconds(passed);
    num_in_window_ = 0;
    window_begin_ += passed;
  }
  ++num_in_window_;
  const double window_seconds = ToSeconds(kRateWindow);
  const double seconds = ToSeconds(clock_->Now() - window_begin_);
  return (static_cast<double>(num_in_window_) + last_rate_ * (window_seconds - seconds)) / window_seconds;
}

grpc::experimental::Interceptor* LoadReporterFactory::CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) {
  const std::string_view method = info->method();
  const bool is_of_api = method.starts_with("/quire.v1.") || method.starts_with("/inference.");
  return is_of_api ? new LoadReporter(engine_, &call_rate_) : nullptr;
}

}  // namespace quire
