#include "server/server.h"

#include <grpc/grpc.h>
#include <grpc/support/log.h>
#include <grpcpp/ext/proto_server_reflection_plugin.h>
#include <grpcpp/health_check_service_interface.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include <chrono>
#include <optional>
#include <utility>

#include "engine/base/log.h"
#include "engine/base/status.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "server/admin_service.h"
#include "server/authenticator.h"
#include "server/cache_service.h"
#include "server/generation_service.h"
#include "server/http/http_server.h"
#include "server/http/openai_service.h"
#include "server/metrics/metrics.h"
#include "server/request_ids.h"
#include "server/response_translation.h"
#include "server/serving_memory.h"
#include "server/serving_state.h"
#include "server/stall_watchdog.h"
#include "server/stream_memory.h"
#include "server/text_executor.h"

namespace quire {
namespace {

constexpr int kMaxQueuedEncodes = 1024;
constexpr int kMaxReadBytes = 256 << 10;  // at once, from a connection
// What calls that have ended get to send their last bytes at shutdown.
constexpr std::chrono::seconds kLastBytes(2);

// gRPC's own messages would go to standard error past the log.
void LogFromGrpc(gpr_log_func_args* args) { log::Debug("grpc: {}", args->message); }

std::string HostOf(const std::string& address) { return address.substr(0, address.rfind(':')); }

class GrpcServer : public Server {
 public:
  GrpcServer(const ServerConfig& config, ServedModel model, const Clock* clock)
      : clock_(clock),
        stall_seconds_(config.stall_seconds),
        model_(std::move(model)),
        prompt_encoder_(model_.tokenizer.get(), model_.chat_template.get(), model_.info.vocab_size,
                        model_.info.max_model_len),
        stream_memory_(config.max_stream_buffer_bytes, kStreamBufferBytes),
        cache_(model_.engine.get(), model_.memory, model_.info, config.engine),
        metrics_(model_.name, cache_.ReadConfig(), [this] { return cache_.ReadStats(/*with_requests=*/false); }),
        text_executor_(static_cast<int>(config.text_threads), kMaxQueuedEncodes, MaxQueuedTextBytes(config)),
        pipeline_{.engine = model_.engine.get(),
                  .text_executor = &text_executor_,
                  .tokenizer = model_.tokenizer.get(),
                  .prompt_encoder = &prompt_encoder_,
                  .clock = clock,
                  .metrics = &metrics_.requests(),
                  .log_prompts = config.log_prompts},
        generation_(pipeline_, DescribeModel(), &authenticator_, &stream_memory_, &request_ids_),
        openai_(pipeline_, DescribeModel(), &authenticator_, &stream_memory_, &request_ids_),
        admin_(model_.engine.get(), [this] { StartDraining(); }) {}

  ~GrpcServer() override { Shutdown(Duration::zero()); }

  absl::Status Listen(const std::string& address) {
    grpc::EnableDefaultHealthCheckService(true);
    grpc::reflection::InitProtoReflectionServerBuilderPlugin();
    int port = 0;
    grpc::ServerBuilder builder;
    builder.AddListeningPort(address, grpc::InsecureServerCredentials(), &port);
    // Two servers on one port would share its connections in silence.
    builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
    // gRPC would make room for as much as it guesses that a connection sends next, up to 4 MiB of the quota below, and
    // end calls for the lack of it.
    builder.AddChannelArgument(GRPC_ARG_TCP_MAX_READ_CHUNK_SIZE, kMaxReadBytes);
    grpc::ResourceQuota quota("quire");
    quota.Resize(kRpcBufferBytes);
    builder.SetResourceQuota(quota);
    builder.SetMaxReceiveMessageSize(kMaxReceiveMessageBytes);
    builder.RegisterService(&generation_);
    builder.RegisterService(&cache_);
    builder.RegisterService(&admin_);
    server_ = builder.BuildAndStart();
    if (server_ == nullptr || port == 0) {
      return InvalidArgument("grpc_listen", address, "an address of this machine whose port is not in use");
    }
    address_ = StrCat(HostOf(address), ":", port);
    serving_.Start(server_->GetHealthCheckService());
    watchdog_.emplace(model_.engine.get(), clock_, stall_seconds_,
                      [this](bool stalled) { serving_.SetStalled(stalled); });
    return absl::OkStatus();
  }

  absl::Status ListenForHttp(const ServerConfig& config) {
    const HttpLimits limits = {.max_connections = config.http_max_connections,
                               .max_body_bytes = config.http_max_body_bytes,
                               .request_timeout = ToDuration(config.http_request_seconds),
                               .idle_timeout = ToDuration(config.http_idle_seconds)};
    QUIRE_ASSIGN_OR_RETURN(http_, HttpServer::Start(config.http_listen, limits, &openai_, &serving_, &metrics_,
                                                    [this] { return cache_.ReadStats(/*with_requests=*/true); }));
    return absl::OkStatus();
  }

  const std::string& address() const override { return address_; }
  std::string http_address() const override { return http_ ? http_->address() : ""; }

  void Shutdown(Duration drain) override {
    if (server_ == nullptr) return;
    StartDraining();
    if (!model_.engine->WaitUntilIdle(clock_->Now() + drain)) {
      log::Warning("requests still run after {:.1f} s: ending them", ToSeconds(drain));
      model_.engine->CancelAll(Unavailable("the server is shutting down", std::chrono::seconds(5)));
    }
    watchdog_.reset();
    cache_.StopWatches();
    if (http_) http_->Stop(kLastBytes);
    server_->Shutdown(std::chrono::system_clock::now() + kLastBytes);
    server_->Wait();
    server_.reset();
  }

 private:
  void StartDraining() {
    serving_.SetDraining();
    model_.engine->StartDraining();
  }

  v1::ModelInfo DescribeModel() const {
    return ToProto(model_.info, model_.name, *model_.tokenizer, model_.chat_template != nullptr);
  }

  // Destroyed from below: calls need the services, these the executor, this the model.
  const Clock* const clock_;
  const double stall_seconds_;
  ServedModel model_;
  const KeylessAuthenticator authenticator_;
  const PromptEncoder prompt_encoder_;
  StreamMemory stream_memory_;
  CacheService cache_;
  const Metrics metrics_;
  TextExecutor text_executor_;
  RequestIds request_ids_;
  const GenerationPipeline pipeline_;
  GenerationService generation_;
  OpenAiService openai_;
  AdminService admin_;
  ServingState serving_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<HttpServer> http_;
  std::optional<StallWatchdog> watchdog_;
  std::string address_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Server>> Server::Start(const ServerConfig& config, ServedModel model,
                                                      const Clock* clock) {
  gpr_set_log_function(LogFromGrpc);
  // Links health.proto's generated code, which reflection describes the service with.
  grpc::health::v1::HealthCheckRequest::descriptor();
  auto server = std::make_unique<GrpcServer>(config, std::move(model), clock);
  QUIRE_RETURN_IF_ERROR(server->Listen(config.grpc_listen));
  if (!config.http_listen.empty()) QUIRE_RETURN_IF_ERROR(server->ListenForHttp(config));
  return server;
}

}  // namespace quire
