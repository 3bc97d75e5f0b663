#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "client/cancel_signal.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "quire/v1/cache.grpc.pb.h"
#include "quire/v1/generation.grpc.pb.h"

namespace quire {

struct ClientOptions {
  std::string address;                    // host:port
  std::optional<double> timeout_seconds;  // > 0; each call's deadline; unset: none
  std::string tenant;                     // sent as x-tenant-id; empty: not sent
  std::string api_key;                    // sent as a bearer's; empty: not sent
  bool use_tls = false;
  std::string tls_ca_path;           // PEM file of authorities that are trusted; empty: the system's
  std::string tls_certificate_path;  // PEM files that tell the server who calls; empty: none
  std::string tls_key_path;
};

// The services of a quire server over one channel. Every call carries the deadline and the tenant, blocks
// until its end, and is cancelled by its signal. Thread-safe.
class GenerationClient {
 public:
  explicit GenerationClient(ClientOptions options);

  const std::string& tenant() const { return options_.tenant; }
  const std::optional<double>& timeout_seconds() const { return options_.timeout_seconds; }
  // For calls of one's own; they carry no deadline and no tenant, and the key only by AddKey.
  v1::Generation::Stub* generation() const { return generation_.get(); }
  void AddKey(grpc::ClientContext& context) const;
  const std::string& api_key() const { return options_.api_key; }

  // Waits until the server answers. UNAVAILABLE with one sentence that names the address: nobody does.
  grpc::Status Connect(CancelSignal& cancel);

  grpc::Status Generate(const v1::GenerateRequest& request, v1::GenerateResponse& response, CancelSignal& cancel);
  // `on_event` returns false to cancel the call.
  grpc::Status GenerateStream(const v1::GenerateRequest& request,
                              const std::function<bool(const v1::GenerateStreamResponse&)>& on_event,
                              CancelSignal& cancel);
  grpc::Status Tokenize(const v1::TokenizeRequest& request, v1::TokenizeResponse& response, CancelSignal& cancel);
  grpc::Status Detokenize(const v1::DetokenizeRequest& request, v1::DetokenizeResponse& response, CancelSignal& cancel);
  grpc::Status ListModels(v1::ListModelsResponse& response, CancelSignal& cancel);
  grpc::Status GetModelInfo(const std::string& model, v1::ModelInfo& info, CancelSignal& cancel);

  grpc::Status GetCacheStats(bool include_requests, v1::CacheStats& stats, CancelSignal& cancel);
  grpc::Status GetCacheConfig(v1::CacheConfig& config, CancelSignal& cancel);
  // `on_stats` returns false to cancel the call.
  grpc::Status WatchCacheStats(const v1::WatchCacheStatsRequest& request,
                               const std::function<bool(const v1::CacheStats&)>& on_stats, CancelSignal& cancel);

  // The whole server's health.
  grpc::Status CheckHealth(grpc::health::v1::HealthCheckResponse& response, CancelSignal& cancel);

 private:
  void Prepare(grpc::ClientContext& context) const;
  std::string ConnectFailure() const;

  const ClientOptions options_;
  const std::shared_ptr<grpc::Channel> channel_;
  const std::unique_ptr<v1::Generation::Stub> generation_;
  const std::unique_ptr<v1::Cache::Stub> cache_;
  const std::unique_ptr<grpc::health::v1::Health::Stub> health_;
};

}  // namespace quire
