#include "client/generation_client.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <sstream>
#include <utility>

#include "client/number_format.h"

namespace quire {
namespace {

using std::chrono::milliseconds;
using std::chrono::system_clock;

constexpr double kConnectTimeoutSeconds = 10.0;
constexpr milliseconds kCancelPollInterval(50);
constexpr int kMaxMessageBytes = 256 << 20;  // an answer with all log-probabilities is far above gRPC's 4 MiB

milliseconds ToMilliseconds(double seconds) { return milliseconds(static_cast<int64_t>(seconds * 1000.0)); }

// Empty for no path; a file that can't be read is empty too, which the handshake then fails for.
std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const ClientOptions& options) {
  if (!options.use_tls) return grpc::InsecureChannelCredentials();
  return grpc::SslCredentials({.pem_root_certs = ReadFile(options.tls_ca_path),
                               .pem_private_key = ReadFile(options.tls_key_path),
                               .pem_cert_chain = ReadFile(options.tls_certificate_path)});
}

std::shared_ptr<grpc::Channel> MakeChannel(const ClientOptions& options) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  // A restarted server is found again soon, and a proxy of the environment is not for inference servers.
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 5000);
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  return grpc::CreateCustomChannel(options.address, CredentialsOf(options), arguments);
}

// Reads a server stream to its end, or until `on_message` wants no more.
template <typename Message>
grpc::Status Drain(grpc::ClientReader<Message>& reader, grpc::ClientContext& context,
                   const std::function<bool(const Message&)>& on_message) {
  Message message;
  while (reader.Read(&message)) {
    if (!on_message(message)) {
      context.TryCancel();
      break;
    }
  }
  return reader.Finish();
}

}  // namespace

GenerationClient::GenerationClient(ClientOptions options)
    : options_(std::move(options)),
      channel_(MakeChannel(options_)),
      generation_(v1::Generation::NewStub(channel_)),
      cache_(v1::Cache::NewStub(channel_)),
      health_(grpc::health::v1::Health::NewStub(channel_)) {}

grpc::Status GenerationClient::Connect(CancelSignal& cancel) {
  const double timeout_seconds =
      std::min(options_.timeout_seconds.value_or(kConnectTimeoutSeconds), kConnectTimeoutSeconds);
  const auto deadline = system_clock::now() + ToMilliseconds(timeout_seconds);
  grpc_connectivity_state state = channel_->GetState(/*try_to_connect=*/true);
  while (state != GRPC_CHANNEL_READY) {
    if (cancel.IsCancelled()) {
      return grpc::Status(grpc::StatusCode::CANCELLED, "interrupted while connecting");
    }
    std::string reason;
    if (state == GRPC_CHANNEL_TRANSIENT_FAILURE) {
      reason = ConnectFailure();
    } else if (system_clock::now() >= deadline) {
      reason = "no gRPC server answered within " + FormatDecimal(timeout_seconds, 1) + " s";
    }
    if (!reason.empty()) {
      return grpc::Status(grpc::StatusCode::UNAVAILABLE, "cannot connect to " + options_.address + ": " + reason);
    }
    channel_->WaitForStateChange(state, std::min(deadline, system_clock::now() + kCancelPollInterval));
    state = channel_->GetState(/*try_to_connect=*/true);
  }
  return grpc::Status::OK;
}

// A call on a channel that failed ends at once, and its message holds the reason.
std::string GenerationClient::ConnectFailure() const {
  grpc::ClientContext context;
  context.set_deadline(system_clock::now() + std::chrono::seconds(1));
  grpc::health::v1::HealthCheckResponse response;
  const std::string message = health_->Check(&context, {}, &response).error_message();
  if (message.find("Connection refused") != std::string::npos) {
    return "connection refused; is quire-server running there?";
  }
  if (message.find("DNS resolution failed") != std::string::npos) {
    return "the host name cannot be resolved";
  }
  return message.empty() ? "the connection failed" : message;
}

void GenerationClient::Prepare(grpc::ClientContext& context) const {
  if (options_.timeout_seconds) {
    context.set_deadline(system_clock::now() + ToMilliseconds(*options_.timeout_seconds));
  }
  if (!options_.tenant.empty()) {
    context.AddMetadata("x-tenant-id", options_.tenant);
  }
  AddKey(context);
}

void GenerationClient::AddKey(grpc::ClientContext& context) const {
  if (!options_.api_key.empty()) {
    context.AddMetadata("authorization", "Bearer " + options_.api_key);
  }
}

grpc::Status GenerationClient::Generate(const v1::GenerateRequest& request, v1::GenerateResponse& response,
                                        CancelSignal& cancel) {
  grpc::ClientContext context;
  Prepare(context);
  const auto subscription = cancel.OnCancel([&context] { context.TryCancel(); });
  return generation_->Generate(&context, request, &response);
}

grpc::Status GenerationClient::GenerateStream(const v1::GenerateRequest& request,
                                              const std::function<bool(const v1::GenerateStreamResponse&)>& on_event,
                                              CancelSignal& cancel) {
  grpc::ClientContext context;
  Prepare(context);
  const auto subscription = cancel.OnCancel([&context] { context.TryCancel(); });
  return Drain<v1::GenerateStreamResponse>(*generation_->GenerateStream(&context, request), context, on_event);
}

grpc::Status GenerationClient::Tokenize(const v1::TokenizeRequest& request, v1::TokenizeResponse& response,
                                        CancelSignal& cancel) {
  grpc::ClientContext context;
  Prepare(context);
  const auto subscription = cancel.OnCancel([&context] { context.TryCancel(); });
  return generation_->Tokenize(&context, request, &response);
}

grpc::Status GenerationClient::Detokenize(const v1::DetokenizeRequest& request, v1::DetokenizeResponse& response,
                                          CancelSignal& cancel) {
  grpc::ClientContext context;
  Prepare(context);
  const auto subscription = cancel.OnCancel([&context] { context.TryCancel(); });
  return generation_->Detokenize(&context, request, &response);
}

grpc::Status GenerationClient::ListModels(v1::ListModelsResponse& response, CancelSignal& cancel) {
  grpc::ClientContext context;
  Prepare(context);
  const auto subscription = cancel.OnCancel([&context] { context.TryCancel(); });
  return generation_->ListModels(&context, {}, &response);
}

grpc::Status GenerationClient::GetModelInfo(const std::string& model, v1::ModelInfo& info, CancelSignal& cancel) {
  grpc::ClientContext context;
  Prepare(context);
  const auto subscription = cancel.OnCancel([&context] { context.TryCancel(); });
  v1::GetModelInfoRequest request;
  request.set_model(model);
  return generation_->GetModelInfo(&context, request, &info);
}

grpc::Status GenerationClient::GetCacheStats(bool include_requests, v1::CacheStats& stats, CancelSignal& cancel) {
  grpc::ClientContext context;
  Prepare(context);
  const auto subscription = cancel.OnCancel([&context] { context.TryCancel(); });
  v1::GetCacheStatsRequest request;
  request.set_include_requests(include_requests);
  return cache_->GetCacheStats(&context, request, &stats);
}

grpc::Status GenerationClient::GetCacheConfig(v1::CacheConfig& config, CancelSignal& cancel) {
  grpc::ClientContext context;
  Prepare(context);
  const auto subscription = cancel.OnCancel([&context] { context.TryCancel(); });
  return cache_->GetCacheConfig(&context, {}, &config);
}

grpc::Status GenerationClient::WatchCacheStats(const v1::WatchCacheStatsRequest& request,
                                               const std::function<bool(const v1::CacheStats&)>& on_stats,
                                               CancelSignal& cancel) {
  grpc::ClientContext context;
  Prepare(context);
  const auto subscription = cancel.OnCancel([&context] { context.TryCancel(); });
  return Drain<v1::CacheStats>(*cache_->WatchCacheStats(&context, request), context, on_stats);
}

grpc::Status GenerationClient::CheckHealth(grpc::health::v1::HealthCheckResponse& response, CancelSignal& cancel) {
  grpc::ClientContext context;
  Prepare(context);
  const auto subscription = cancel.OnCancel([&context] { context.TryCancel(); });
  return health_->Check(&context, {}, &response);
}

}  // namespace quire
