#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "client/load_plan.h"
#include "quire/v1/generation.grpc.pb.h"

namespace quire {

// What a client saw of one request. Times are the client's own, from sending the request.
struct LoadMeasurement {
  std::string tenant;
  grpc::StatusCode status = grpc::StatusCode::OK;
  std::string message;  // of a failure
  bool cancelled_by_client = false;
  int64_t num_prompt_tokens = 0;
  int64_t num_cached_prompt_tokens = 0;
  int64_t num_output_tokens = 0;
  std::optional<double> first_token_seconds;
  std::vector<double> gap_seconds;  // between messages with tokens
  double total_seconds = 0;

  // Mean gap per token after the first; nothing with fewer than two.
  std::optional<double> SecondsPerOutputToken() const;
};

// One streamed request that measures itself. Made with new; deletes itself after `on_done`, once it has begun.
class LoadCall : public grpc::ClientReadReactor<v1::GenerateStreamResponse> {
 public:
  using OnDoneFunction = std::function<void(LoadCall*, LoadMeasurement)>;

  // `on_done` runs on a thread of gRPC.
  LoadCall(const PlannedRequest& planned, std::optional<double> timeout_seconds, OnDoneFunction on_done);

  // Sends the request. `stub` outlives the call.
  void Begin(v1::Generation::Stub* stub);

  // Before `on_done`, also before Begin; from any thread.
  void Cancel() { context_.TryCancel(); }

  void OnReadDone(bool ok) override;
  void OnDone(const grpc::Status& status) override;

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;

  void CountTokens(int64_t num_tokens);

  grpc::ClientContext context_;
  v1::GenerateRequest request_;
  v1::GenerateStreamResponse response_;
  const std::optional<int64_t> cancel_after_tokens_;
  const OnDoneFunction on_done_;
  SteadyTime start_;
  SteadyTime last_tokens_;
  LoadMeasurement measurement_;
};

}  // namespace quire
