#pragma once

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <memory>
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

// One streamed request that measures itself. Its completion queue's tags are the call itself, one at a time. (gRPC's
// callback API would do without a queue, but as of 1.51 it can abort when its last channel goes and another comes.)
class LoadCall {
 public:
  LoadCall(const PlannedRequest& planned, std::optional<double> timeout_seconds);

  // Sends the request. `stub` and `queue` outlive the call.
  void Begin(v1::Generation::Stub* stub, grpc::CompletionQueue* queue);

  // The operation under way has ended. False: the call has ended, and measurement() is complete.
  bool Proceed(bool ok);

  // From any thread while the call lives, also before Begin.
  void Cancel() { context_.TryCancel(); }

  LoadMeasurement& measurement() { return measurement_; }

 private:
  using SteadyTime = std::chrono::steady_clock::time_point;
  enum class Stage { kStarting, kReading, kFinishing };

  void TakeResponse();
  void CountTokens(int64_t num_tokens);

  grpc::ClientContext context_;
  v1::GenerateRequest request_;
  v1::GenerateStreamResponse response_;
  grpc::Status status_;
  std::unique_ptr<grpc::ClientAsyncReader<v1::GenerateStreamResponse>> reader_;
  Stage stage_ = Stage::kStarting;
  const std::optional<int64_t> cancel_after_tokens_;
  SteadyTime start_;
  SteadyTime last_tokens_;
  LoadMeasurement measurement_;
};

}  // namespace quire
