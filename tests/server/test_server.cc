#include "tests/server/test_server.h"

#include <stdexcept>
#include <utility>

#include "engine/kv_cache/kv_cache_manager.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/engine_loop.h"
#include "engine/scheduler/scheduler.h"
#include "tests/server/connected_channel.h"

namespace quire::testing {
namespace {

using grpc::health::v1::HealthCheckResponse;

constexpr int64_t kBlockSize = 16;
constexpr int64_t kBytesPerBlock = 4096;
constexpr int kMaxPolls = 20000;

std::function<void()> WithGate(const std::function<void()>& function, Gate* gate) {
  if (gate == nullptr) return function;
  return [function, gate] {
    if (function) function();
    gate->Pass();
  };
}

}  // namespace

std::function<void()> OnExecute(const TestServerOptions& options) {
  return WithGate(options.on_execute, options.execute_gate);
}

std::function<void()> OnEncode(const TestServerOptions& options) {
  return WithGate(options.on_encode, options.encode_gate);
}

void OpenGates(const TestServerOptions& options) {
  for (Gate* const gate : {options.execute_gate, options.encode_gate}) {
    if (gate != nullptr) gate->Open();
  }
}

std::vector<TokenId> ScriptOf(const TestServerOptions& options) {
  std::vector<TokenId> script = options.script_tokens;
  if (script.empty()) {
    for (const char c : options.script) script.push_back(static_cast<unsigned char>(c));
  }
  if (options.script_ends) script.push_back(ByteTokenizer::kEndOfText);
  return script;
}

TestServerOptions EndlessAnswers() {
  return {.script = "abcdefgh", .script_ends = false, .max_model_len = kEndless, .num_blocks = 2 * kEndless / 16};
}

std::unique_ptr<EngineLoop> MakeTestEngine(const TestServerOptions& options, std::unique_ptr<ModelRunner> runner,
                                           const Clock* clock) {
  EngineDependencies dependencies;
  dependencies.clock = clock;
  dependencies.kv_cache = std::make_unique<KvCacheManager>(
      KvCacheConfig{.num_blocks = options.num_blocks, .block_size = kBlockSize}, clock);
  const SchedulerConfig config = {.max_num_batched_tokens = 512,
                                  .max_num_seqs = options.max_num_seqs,
                                  .max_model_len = options.max_model_len,
                                  .bytes_per_block = kBytesPerBlock,
                                  .max_num_logits_rows = options.max_num_seqs};
  dependencies.scheduler = std::make_unique<Scheduler>(config, dependencies.kv_cache.get(), clock);
  dependencies.model_runner = std::move(runner);
  dependencies.end_of_generation_ids = {ByteTokenizer::kEndOfText};
  return std::make_unique<EngineLoop>(std::make_unique<Engine>(std::move(dependencies)), options.queue_limits);
}

TestServer::TestServer(const TestServerOptions& options) : options_(options) {
  auto runner = std::make_unique<ScriptedModelRunner>(ScriptOf(options), ByteTokenizer::kVocabSize);
  runner_ = runner.get();
  runner_->SetOnExecute(OnExecute(options));
  auto tokenizer = std::make_unique<ByteTokenizer>();
  tokenizer->SetOnEncode(OnEncode(options));
  tokenizer->SetMaxTokenBytes(options.max_token_bytes);

  ServedModel model;
  model.name = "test-model";
  model.tokenizer = std::move(tokenizer);
  model.chat_template = std::make_unique<PlainTemplate>();
  model.info.architecture = "scripted";
  model.info.vocab_size = ByteTokenizer::kVocabSize;
  model.info.max_model_len = options.max_model_len;
  model.info.kv_cache_dtype = "f32";
  model.memory.block_size = kBlockSize;
  model.memory.bytes_per_block = kBytesPerBlock;
  model.memory.num_blocks = options.num_blocks;
  model.memory.pool_bytes = options.num_blocks * kBytesPerBlock;
  model.memory.items.weights_bytes = 1000;
  model.memory.items.workspace_bytes = 200;
  model.memory.reserve_bytes = 30;
  model.memory.budget_bytes = model.memory.pool_bytes + 1234;
  const Clock* const clock = options.clock != nullptr ? options.clock : &steady_clock_;
  model.engine = MakeTestEngine(options, std::move(runner), clock);

  ServerConfig config;
  config.grpc_listen = "127.0.0.1:0";
  config.max_stream_buffer_bytes = options.max_stream_buffer_bytes;
  config.stall_seconds = options.stall_seconds;
  config.grpc_max_connections = options.grpc_max_connections;
  config.http_listen = options.http_listen;
  config.http_allowed_origins = options.http_allowed_origins;
  config.http_max_connections = options.http_max_connections;
  config.http_request_seconds = options.http_request_seconds;
  config.api_keys = options.api_keys;
  config.tls = options.tls;
  config.rate_limits = options.rate_limits;
  absl::StatusOr<Security> security = LoadSecurity(config.api_keys, /*tenants_are_set=*/false, config.tls, clock);
  if (!security.ok()) throw std::runtime_error(security.status().ToString());
  absl::StatusOr<std::unique_ptr<Server>> server = Server::Start(config, *std::move(security), std::move(model), clock);
  if (!server.ok()) throw std::runtime_error(server.status().ToString());
  server_ = *std::move(server);
  channel_ = NewChannel();
  generation_ = v1::Generation::NewStub(channel_);
  cache_ = v1::Cache::NewStub(channel_);
  admin_ = v1::Admin::NewStub(channel_);
}

std::shared_ptr<grpc::Channel> TestServer::NewChannel() const {
  return ConnectedChannel(address(), options_.credentials);
}

bool TestServer::PollStats(const std::function<bool(const v1::CacheStats&)>& done) {
  for (int i = 0; i < kMaxPolls; ++i) {
    grpc::ClientContext context;
    v1::GetCacheStatsRequest request;
    request.set_include_requests(true);
    v1::CacheStats stats;
    if (cache_->GetCacheStats(&context, request, &stats).ok() && done(stats)) return true;
  }
  return false;
}

bool TestServer::PollUntilIdle() {
  return PollStats([](const v1::CacheStats& stats) {
    return stats.blocks_used() == 0 && stats.requests_running() == 0 && stats.requests_waiting() == 0;
  });
}

HealthCheckResponse::ServingStatus HealthOf(const std::shared_ptr<grpc::Channel>& channel, const std::string& service) {
  grpc::ClientContext context;
  grpc::health::v1::HealthCheckRequest request;
  request.set_service(service);
  HealthCheckResponse response;
  const grpc::Status status = grpc::health::v1::Health::NewStub(channel)->Check(&context, request, &response);
  return status.ok() ? response.status() : HealthCheckResponse::SERVICE_UNKNOWN;
}

bool PollHealth(const std::shared_ptr<grpc::Channel>& channel, const std::string& service,
                HealthCheckResponse::ServingStatus status) {
  for (int i = 0; i < kMaxPolls; ++i) {
    if (HealthOf(channel, service) == status) return true;
  }
  return false;
}

v1::GenerateRequest TextRequest(const std::string& text) {
  v1::GenerateRequest request;
  request.set_text(text);
  request.mutable_sampling()->set_temperature(0);
  return request;
}

}  // namespace quire::testing
