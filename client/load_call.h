#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/load_measurement.h"
#include "client/load_plan.h"

namespace quire {

// One streamed request that measures itself. Whatever carries it derives from this and tells it what happens, so that
// all servers are measured alike.
class LoadCall {
 public:
  virtual ~LoadCall() = default;
  LoadCall(const LoadCall&) = delete;
  LoadCall& operator=(const LoadCall&) = delete;

  // Sends the request. When it has ended, `on_end` runs once, on a thread of the transport; the call is not touched
  // after that, and must not be destroyed within.
  virtual void Begin(std::function<void()> on_end) = 0;

  // From any thread while the call lives, also before Begin.
  virtual void Cancel() = 0;

  // Complete once the call has ended.
  LoadMeasurement& measurement() { return measurement_; }

 protected:
  explicit LoadCall(const PlannedRequest& planned);

  // The request is about to be sent. False: the client is to cancel it at once.
  bool OnSending();
  // A message with tokens has come. False: the client is to cancel now.
  bool OnTokens(int64_t num_tokens);
  void OnEnded(grpc::StatusCode status, std::string message);

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  const std::optional<int64_t> cancel_after_tokens_;
  SteadyTime start_;
  SteadyTime last_tokens_;
  LoadMeasurement measurement_;
};

// Makes the calls to one server; outlives them.
class LoadTransport {
 public:
  virtual ~LoadTransport() = default;
  virtual std::unique_ptr<LoadCall> NewCall(const PlannedRequest& planned) = 0;
};

}  // namespace quire
