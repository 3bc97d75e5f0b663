#include "tests/client/fake_server.h"

namespace quire::testing {

FakeServer::FakeServer() {
  int port = 0;
  grpc::ServerBuilder builder;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(static_cast<v1::Generation::Service*>(this));
  builder.RegisterService(static_cast<v1::Cache::Service*>(this));
  builder.RegisterService(static_cast<grpc::health::v1::Health::Service*>(this));
  server_ = builder.BuildAndStart();
  address_ = "127.0.0.1:" + std::to_string(port);
}

FakeServer::~FakeServer() { server_->Shutdown(std::chrono::system_clock::now()); }

std::vector<v1::GenerateRequest> FakeServer::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

std::string FakeServer::tenant() const {
  const std::lock_guard lock(mutex_);
  return tenant_;
}

void FakeServer::Record(const grpc::ServerContext& context, const v1::GenerateRequest& request) {
  const std::lock_guard lock(mutex_);
  requests_.push_back(request);
  const auto tenant = context.client_metadata().find("x-tenant-id");
  tenant_ = tenant == context.client_metadata().end() ? "" : std::string(tenant->second.data(), tenant->second.size());
}

grpc::Status FakeServer::Generate(grpc::ServerContext* context, const v1::GenerateRequest* request,
                                  v1::GenerateResponse* response) {
  Record(*context, *request);
  return on_generate(*request, *response);
}

grpc::Status FakeServer::GenerateStream(grpc::ServerContext* context, const v1::GenerateRequest* request,
                                        StreamWriter* writer) {
  Record(*context, *request);
  return on_stream(*context, *request, *writer);
}

grpc::Status FakeServer::Tokenize(grpc::ServerContext*, const v1::TokenizeRequest* request,
                                  v1::TokenizeResponse* response) {
  for (const char letter : request->text()) {
    response->add_token_ids(static_cast<unsigned char>(letter));
    response->add_token_texts(std::string(1, letter));
  }
  response->set_max_model_len(8192);
  return grpc::Status::OK;
}

grpc::Status FakeServer::Detokenize(grpc::ServerContext*, const v1::DetokenizeRequest* request,
                                    v1::DetokenizeResponse* response) {
  for (const int32_t id : request->token_ids()) {
    response->mutable_text()->push_back(static_cast<char>(id));
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::ListModels(grpc::ServerContext*, const v1::ListModelsRequest*,
                                    v1::ListModelsResponse* response) {
  *response->add_models() = model_info;
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetCacheStats(grpc::ServerContext*, const v1::GetCacheStatsRequest* request,
                                       v1::CacheStats* response) {
  *response = cache_stats;
  if (!request->include_requests()) {
    response->clear_requests();
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::GetCacheConfig(grpc::ServerContext*, const v1::GetCacheConfigRequest*,
                                        v1::CacheConfig* response) {
  *response = cache_config;
  return grpc::Status::OK;
}

grpc::Status FakeServer::WatchCacheStats(grpc::ServerContext*, const v1::WatchCacheStatsRequest* request,
                                         grpc::ServerWriter<v1::CacheStats>* writer) {
  watch_interval_seconds = request->interval_seconds();
  for (int i = 0; i < num_watched; ++i) {
    writer->Write(cache_stats);
  }
  return grpc::Status::OK;
}

grpc::Status FakeServer::Check(grpc::ServerContext*, const grpc::health::v1::HealthCheckRequest*,
                               grpc::health::v1::HealthCheckResponse* response) {
  response->set_status(health);
  return grpc::Status::OK;
}

void WriteStarted(StreamWriter& writer, int prompt_tokens) {
  v1::GenerateStreamResponse event;
  event.mutable_started()->set_request_id("request-1");
  event.mutable_started()->set_model("tiny");
  event.mutable_started()->set_prompt_tokens(prompt_tokens);
  writer.Write(event);
}

bool WriteChunk(StreamWriter& writer, const std::string& text, int32_t token_id) {
  v1::GenerateStreamResponse event;
  event.mutable_chunk()->set_text(text);
  event.mutable_chunk()->add_token_ids(token_id);
  return writer.Write(event);
}

void WriteFinished(StreamWriter& writer, v1::FinishReason reason, int prompt_tokens, int completion_tokens) {
  v1::GenerateStreamResponse event;
  event.mutable_finished()->set_finish_reason(reason);
  event.mutable_finished()->mutable_usage()->set_prompt_tokens(prompt_tokens);
  event.mutable_finished()->mutable_usage()->set_completion_tokens(completion_tokens);
  event.mutable_finished()->mutable_timings()->set_total_seconds(0.5);
  writer.Write(event);
}

grpc::Status StreamPieces(StreamWriter& writer, const std::vector<std::string>& pieces) {
  WriteStarted(writer, 5);
  int32_t token_id = 100;
  for (const std::string& piece : pieces) {
    WriteChunk(writer, piece, token_id++);
  }
  WriteFinished(writer, v1::FINISH_REASON_STOP_TOKEN, 5, static_cast<int>(pieces.size()));
  return grpc::Status::OK;
}

grpc::Status StreamUntilCancelled(StreamWriter& writer) {
  while (writer.Write(v1::GenerateStreamResponse())) {
  }
  return grpc::Status::CANCELLED;
}

void FillAnswer(const std::string& text, v1::GenerateResponse& response) {
  response.set_request_id("request-1");
  response.set_model("tiny");
  v1::Output& output = *response.add_outputs();
  output.set_text(text);
  output.add_token_ids(100);
  output.set_finish_reason(v1::FINISH_REASON_LENGTH);
  response.mutable_usage()->set_prompt_tokens(5);
  response.mutable_usage()->set_completion_tokens(1);
}

}  // namespace quire::testing
