#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "grpc/health/v1/health.grpc.pb.h"
#include "quire/v1/cache.grpc.pb.h"
#include "quire/v1/generation.grpc.pb.h"

namespace quire::testing {

using StreamWriter = grpc::ServerWriter<v1::GenerateStreamResponse>;

// A quire server without an engine, on a free port of 127.0.0.1: what it answers is what a test sets. Handlers
// run on gRPC's threads, several at once; they are set before the first call.
class FakeServer : private v1::Generation::Service,
                   private v1::Cache::Service,
                   private grpc::health::v1::Health::Service {
 public:
  using StreamHandler = std::function<grpc::Status(grpc::ServerContext&, const v1::GenerateRequest&, StreamWriter&)>;
  using UnaryHandler = std::function<grpc::Status(const v1::GenerateRequest&, v1::GenerateResponse&)>;

  FakeServer();
  ~FakeServer() override;

  const std::string& address() const { return address_; }

  // Every request of Generate and GenerateStream so far.
  std::vector<v1::GenerateRequest> requests() const;
  // x-tenant-id of the last of them; empty if it had none.
  std::string tenant() const;

  StreamHandler on_stream;
  UnaryHandler on_generate;
  v1::CacheStats cache_stats;
  v1::CacheConfig cache_config;
  int num_watched = 2;                // statistics that a watch sends before it ends
  double watch_interval_seconds = 0;  // of the last watch
  v1::ModelInfo model_info;
  grpc::health::v1::HealthCheckResponse::ServingStatus health = grpc::health::v1::HealthCheckResponse::SERVING;

 private:
  void Record(const grpc::ServerContext& context, const v1::GenerateRequest& request);

  grpc::Status Generate(grpc::ServerContext* context, const v1::GenerateRequest* request,
                        v1::GenerateResponse* response) override;
  grpc::Status GenerateStream(grpc::ServerContext* context, const v1::GenerateRequest* request,
                              StreamWriter* writer) override;
  grpc::Status Tokenize(grpc::ServerContext* context, const v1::TokenizeRequest* request,
                        v1::TokenizeResponse* response) override;
  grpc::Status Detokenize(grpc::ServerContext* context, const v1::DetokenizeRequest* request,
                          v1::DetokenizeResponse* response) override;
  grpc::Status ListModels(grpc::ServerContext* context, const v1::ListModelsRequest* request,
                          v1::ListModelsResponse* response) override;
  grpc::Status GetCacheStats(grpc::ServerContext* context, const v1::GetCacheStatsRequest* request,
                             v1::CacheStats* response) override;
  grpc::Status GetCacheConfig(grpc::ServerContext* context, const v1::GetCacheConfigRequest* request,
                              v1::CacheConfig* response) override;
  grpc::Status WatchCacheStats(grpc::ServerContext* context, const v1::WatchCacheStatsRequest* request,
                               grpc::ServerWriter<v1::CacheStats>* writer) override;
  grpc::Status Check(grpc::ServerContext* context, const grpc::health::v1::HealthCheckRequest* request,
                     grpc::health::v1::HealthCheckResponse* response) override;

  mutable std::mutex mutex_;
  std::vector<v1::GenerateRequest> requests_;
  std::string tenant_;
  std::string address_;
  std::unique_ptr<grpc::Server> server_;
};

// Events of a stream.
void WriteStarted(StreamWriter& writer, int prompt_tokens);
bool WriteChunk(StreamWriter& writer, const std::string& text, int32_t token_id);
void WriteFinished(StreamWriter& writer, v1::FinishReason reason, int prompt_tokens, int completion_tokens);

// A stream of the given pieces, one token each with ids from 100, that ends by a stop token.
grpc::Status StreamPieces(StreamWriter& writer, const std::vector<std::string>& pieces);

// Sends empty chunks until the call is cancelled or its deadline has passed.
grpc::Status StreamUntilCancelled(StreamWriter& writer);

// A whole answer.
void FillAnswer(const std::string& text, v1::GenerateResponse& response);

}  // namespace quire::testing
