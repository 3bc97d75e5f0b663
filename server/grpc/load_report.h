#pragma once

#include <grpcpp/support/server_interceptor.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>

#include "engine/base/clock.h"
#include "engine/runtime/engine_loop.h"

namespace quire {

// How often something happens a second, over the last five seconds: what is missing of them since the count began anew
// is filled with the rate of those before. Thread-safe.
class EventRate {
 public:
  // `clock` must outlive the rate.
  explicit EventRate(const Clock* clock);

  // Counts one, and tells the rate with it.
  double Count();

 private:
  const Clock* const clock_;
  std::mutex mutex_;  // guards what follows
  TimePoint window_begin_;
  int64_t num_in_window_ = 0;
  double last_rate_ = 0;  // of the window before
};

// An OrcaLoadReport of what the engine is asked for: as bytes, its protobuf form.
std::string SerializeLoadReport(const EngineLoad& load, double calls_per_second);

// Tells callers, in the trailing metadata of each call of the API, how loaded the server is, so that they can send less
// to one that is: ORCA's per-request reports,
// https://github.com/grpc/proposal/blob/master/A51-custom-backend-metrics.md.
class LoadReporterFactory : public grpc::experimental::ServerInterceptorFactoryInterface {
 public:
  // `engine` and `clock` must outlive the server.
  LoadReporterFactory(const EngineLoop* engine, const Clock* clock) : engine_(engine), call_rate_(clock) {}

  grpc::experimental::Interceptor* CreateServerInterceptor(grpc::experimental::ServerRpcInfo* info) override;

 private:
  const EngineLoop* const engine_;
  EventRate call_rate_;
};

}  // namespace quire
