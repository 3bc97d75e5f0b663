#include "server/server.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "engine/base/log.h"
#include "engine/base/status.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/generation/request_ids.h"
#include "server/generation/text_executor.h"
#include "server/grpc/admin_service.h"
#include "server/grpc/cache_service.h"
#include "server/grpc/generation_service.h"
#include "server/grpc/grpc_listener.h"
#include "server/grpc/load_report.h"
#include "server/http/http_server.h"
#include "server/http/openai_service.h"
#include "server/kserve/kserve_service.h"
#include "server/life/serving_state.h"
#include "server/life/stall_watchdog.h"
#include "server/messages/response_translation.h"
#include "server/messages/stream_memory.h"
#include "server/metrics/metrics.h"
#include "server/security/file_watch.h"
#include "server/security/rate_limiter.h"
#include "server/security/tenant_table.h"
#include "server/serving_memory.h"

namespace quire {
namespace {

constexpr int kMaxQueuedEncodes = 1024;
constexpr int kMaxReadBytes = 256 << 10;  // at once, from a connection
constexpr int kMinPingIntervalMs = 10'000;
constexpr int kKeepaliveMs = 60'000;
constexpr int kKeepaliveTimeoutMs = 20'000;
constexpr std::chrono::milliseconds kLastCalls(200);
// What calls that have ended get to send their last bytes at shutdown.
constexpr std::chrono::seconds kLastBytes(2);

// gRPC's own messages would go to standard error past the log.
void LogFromGrpc(gpr_log_func_args* args) { log::Debug("grpc: {}", args->message); }

int ToMilliseconds(double seconds) { return static_cast<int>(std::min(seconds * 1000, 2e9)); }

// Clients may ping as often as they commonly do, without calls too. Those that are gone without a word are found by the
// server's own pings.
void SetConnectionPolicy(const ServerConfig& config, grpc::ServerBuilder* builder) {
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  builder->AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, kKeepaliveMs);
  builder->AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kKeepaliveTimeoutMs);
  builder->AddChannelArgument(GRPC_ARG_MAX_CONCURRENT_STREAMS, static_cast<int>(config.grpc_max_concurrent_streams));
  if (config.grpc_max_connection_age_seconds == 0) return;
  builder->AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, ToMilliseconds(config.grpc_max_connection_age_seconds));
}

// A server of this machine alone that asks for no credentials takes callers for this machine's users: it may not be
// reached by a name that somebody else's DNS turned to this machine's address.
bool NamesMayLie(const ServerConfig& config) {
  return config.api_keys.empty() && config.tls.client_ca.empty() && !config.allow_unauthenticated;
}

class GrpcServer : public Server {
 public:
  GrpcServer(const ServerConfig& config, ServedModel model, Security security, const Clock* clock)
      : clock_(clock),
        stall_seconds_(config.stall_seconds),
        model_(std::move(model)),
        security_(std::move(security)),
        rate_limiter_(config.rate_limits, clock),
        prompt_encoder_(model_.tokenizer.get(), model_.chat_template.get(), model_.info.vocab_size,
                        model_.info.max_model_len),
        stream_memory_(config.max_stream_buffer_bytes, kStreamBufferBytes),
        cache_(model_.engine.get(), security_.authenticator.get(), model_.memory, model_.info, config.engine),
        metrics_(model_.name, cache_.ReadConfig(), [this] { return cache_.ReadStats(/*with_requests=*/false); }),
        text_executor_(static_cast<int>(config.text_threads), kMaxQueuedEncodes, MaxQueuedTextBytes(config)),
        pipeline_{.engine = model_.engine.get(),
                  .text_executor = &text_executor_,
                  .tokenizer = model_.tokenizer.get(),
                  .prompt_encoder = &prompt_encoder_,
                  .clock = clock,
                  .metrics = &metrics_.requests(),
                  .rate_limiter = &rate_limiter_,
                  .log_prompts = config.log_prompts},
        generation_(pipeline_, DescribeModel(), security_.authenticator.get(), &stream_memory_, &request_ids_),
        kserve_(pipeline_, model_.name, security_.authenticator.get(), &serving_, &request_ids_),
        openai_(pipeline_, DescribeModel(), &stream_memory_, &request_ids_),
        admin_(model_.engine.get(), security_.authenticator.get(), [this] { StartDraining(); }) {
    if (security_.key_file == nullptr) return;
    security_.key_file->Watch([this, set = TenantTable{config.engine.tenants, config.rate_limits}](
                                  const KeyFile& file) { SetTenants(file.tenants.value_or(set)); });
  }

  ~GrpcServer() override { Shutdown(Duration::zero()); }

  absl::Status Listen(const ServerConfig& config) {
    QUIRE_ASSIGN_OR_RETURN(listener_, GrpcListener::Bind(config.grpc_listen));
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    grpc::ServerBuilder builder;
    auto acceptor = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        MakeGrpcCredentials(security_.grpc_tls_files()));
    // gRPC would make room for as much as it guesses that a connection sends next, up to 4 MiB of the quota below, and
    // end calls for the lack of it.
    builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMaxReadBytes);
    SetConnectionPolicy(config, &builder);
    std::vector<std::unique_ptr<grpc::experimental::ServerInterceptorFactoryInterface>> interceptors;
    interceptors.push_back(std::make_unique<LoadReporterFactory>(model_.engine.get(), clock_));
    builder.experimental().SetInterceptorCreators(std::move(interceptors));
    grpc::ResourceQuota quota("quire");
    quota.Resize(kRpcBufferBytes);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxReceiveMessageBytes);
    builder.RegisterService(&generation_);
    builder.RegisterService(&kserve_);
    builder.RegisterService(&cache_);
    builder.RegisterService(&admin_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr) return absl::InternalError("gRPC can't start its server");
    serving_.Start(server_->GetHealthCheckService());
    watchdog_.emplace(model_.engine.get(), clock_, stall_seconds_,
                      [this](bool stalled) { serving_.SetStalled(stalled); });
    if (security_.key_file != nullptr) file_watch_.emplace([this] { security_.key_file->Get(); });
    listener_->Start(std::move(acceptor), config.grpc_max_connections, [this] {
      if (security_.tls != nullptr) security_.tls->Get();
    });
    return absl::OkStatus();
  }

  absl::Status ListenForHttp(const ServerConfig& config) {
    const HttpLimits limits = {.max_connections = config.http_max_connections,
                               .max_body_bytes = config.http_max_body_bytes,
                               .request_timeout = ToDuration(config.http_request_seconds),
                               .idle_timeout = ToDuration(config.http_idle_seconds)};
    QUIRE_ASSIGN_OR_RETURN(AllowedOrigins origins,
                           AllowedOrigins::Parse("http_allowed_origins", config.http_allowed_origins));
    const HttpServerParts parts = {.openai = &openai_,
                                   .serving = &serving_,
                                   .metrics = &metrics_,
                                   .authenticator = security_.authenticator.get(),
                                   .cache = &cache_,
                                   .tls = security_.tls.get(),
                                   .cross_origin = {std::move(origins), NamesMayLie(config)}};
    QUIRE_ASSIGN_OR_RETURN(http_, HttpServer::Start(config.http_listen, limits, parts));
    return absl::OkStatus();
  }

  const std::string& address() const override { return listener_->address(); }
  std::string http_address() const override { return http_ ? http_->address() : ""; }

  void Reload() override {
    if (security_.key_file != nullptr) security_.key_file->Reload();
    if (security_.tls != nullptr) security_.tls->Reload();
  }

  void Shutdown(Duration drain) override {
    if (server_ == nullptr) return;
    StartDraining();
    if (!model_.engine->WaitUntilIdle(clock_->Now() + drain)) {
      log::Warning("requests still run after {:.1f} s: ending them", ToSeconds(drain));
      model_.engine->CancelAll(Unavailable("the server is shutting down", std::chrono::seconds(5)));
    }
    // Callers whose requests have just ended send their next ones now: these are still told to go elsewhere, while
    // calls that come once gRPC shuts down are cancelled without a word.
    if (drain > Duration::zero()) std::this_thread::sleep_for(kLastCalls);
    watchdog_.reset();
    file_watch_.reset();
    cache_.StopWatches();
    if (http_) http_->Stop(kLastBytes);
    listener_.reset();
    server_->Shutdown(std::chrono::system_clock::now() + kLastBytes);
    server_->Wait();
    server_.reset();
  }

 private:
  void StartDraining() {
    serving_.SetDraining();
    model_.engine->StartDraining();
  }

  // For all requests from now on, and for those that wait or run from the next step on.
  void SetTenants(const TenantTable& tenants) {
    if (const absl::Status status = model_.engine->SetTenantLimits(tenants.limits); !status.ok()) {
      return log::Error("what tenants may use stays as it is: {}", std::string(status.message()));
    }
    rate_limiter_.SetLimits(tenants.rates);
  }

  v1::ModelInfo DescribeModel() const {
    return ToProto(model_.info, model_.name, *model_.tokenizer, model_.chat_template != nullptr);
  }

  // Destroyed from below: calls need the services, these the executor, this the model.
  const Clock* const clock_;
  const double stall_seconds_;
  ServedModel model_;
  const Security security_;
  RateLimiter rate_limiter_;
  const PromptEncoder prompt_encoder_;
  StreamMemory stream_memory_;
  CacheService cache_;
  const Metrics metrics_;
  TextExecutor text_executor_;
  RequestIds request_ids_;
  const GenerationPipeline pipeline_;
  ServingState serving_;
  GenerationService generation_;
  KserveService kserve_;
  OpenAiService openai_;
  AdminService admin_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<HttpServer> http_;
  std::unique_ptr<GrpcListener> listener_;
  std::optional<StallWatchdog> watchdog_;
  std::optional<FileWatch> file_watch_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerConfig& config, Security security, ServedModel model,
                                                      const Clock* clock) {
  gpr_set_log_function(LogFromGrpc);
  // Links health.proto's generated code, which reflection describes the service with.
  grpc::health::v1::HealthCheckRequest::descriptor();
  auto server = std::make_unique<GrpcServer>(config, std::move(model), std::move(security), clock);
  QUIRE_RETURN_IF_ERROR(server->Listen(config));
  if (!config.http_listen.empty()) QUIRE_RETURN_IF_ERROR(server->ListenForHttp(config));
  return server;
}

}  // namespace quire
