#pragma once

#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/runtime/queue_limits.h"
#include "grpc/health/v1/health.grpc.pb.h"
#include "quire/v1/admin.grpc.pb.h"
#include "quire/v1/cache.grpc.pb.h"
#include "quire/v1/generation.grpc.pb.h"
#include "server/server.h"
#include "tests/server/fake_text.h"
#include "tests/server/gate.h"
#include "tests/server/scripted_model_runner.h"

namespace quire::testing {

struct TestServerOptions {
  std::string script = "hello";             // what every answer says, over and over
  bool script_ends = true;                  // with the end-of-text token
  std::vector<TokenId> script_tokens = {};  // instead of `script`
  int64_t max_model_len = 1024;
  int64_t num_blocks = 256;
  int64_t max_num_seqs = 8;
  std::function<void()> on_execute = {};
  std::function<void()> on_encode = {};
  // Passed by every step, and by every prompt that is encoded; opened at the end, so that a test that fails ends too.
  Gate* execute_gate = nullptr;
  Gate* encode_gate = nullptr;
  int64_t max_token_bytes = 8;
  QueueLimits queue_limits = {};
  int64_t max_stream_buffer_bytes = 4 << 20;
  double stall_seconds = 30;
  int64_t grpc_max_connections = 256;
  std::string http_listen = {};  // none
  std::string http_allowed_origins = {};
  int64_t http_max_connections = 64;
  double http_request_seconds = 15;
  std::string api_keys = {};  // path; none
  TlsFiles tls = {};
  RateLimitsByTenant rate_limits = {};
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();  // of the test's clients
  const Clock* clock = nullptr;  // the whole server's; outlives it; null: the steady clock
};

// Answers that would go on for kEndless tokens, two at once: whoever ends them ends them in the middle.
inline constexpr int64_t kEndless = 1 << 22;
TestServerOptions EndlessAnswers();

// The real engine on its thread, over `runner`, with what the options say of it. `clock` must outlive it.
std::unique_ptr<EngineLoop> MakeTestEngine(const TestServerOptions& options, std::unique_ptr<ModelRunner> runner,
                                           const Clock* clock);

// What a step and an encoding call of `options`: the function, and the gate.
std::function<void()> OnExecute(const TestServerOptions& options);
std::function<void()> OnEncode(const TestServerOptions& options);
void OpenGates(const TestServerOptions& options);

// What `options` lets every answer say.
std::vector<TokenId> ScriptOf(const TestServerOptions& options);

// The real server over a real socket, with the real engine, and a model and a tokenizer that tests understand.
class TestServer {
 public:
  explicit TestServer(const TestServerOptions& options = {});
  ~TestServer() { OpenGates(options_); }

  // A channel of its own: a connection that no other test client shares.
  std::shared_ptr<grpc::Channel> NewChannel() const;

  v1::Generation::Stub& generation() { return *generation_; }
  v1::Cache::Stub& cache() { return *cache_; }
  v1::Admin::Stub& admin() { return *admin_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  std::string http_address() const { return server_->http_address(); }
  Server& server() { return *server_; }
  const std::string& address() const { return server_->address(); }
  const ScriptedModelRunner& runner() const { return *runner_; }

  // Asks for statistics until `done` says so of them, at most some thousand times; false if it never did.
  bool PollStats(const std::function<bool(const v1::CacheStats&)>& done);
  // The same for "every block is free and nothing runs or waits".
  bool PollUntilIdle();

 private:
  const TestServerOptions options_;
  SteadyClock steady_clock_;
  ScriptedModelRunner* runner_ = nullptr;  // the engine's
  std::unique_ptr<Server> server_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<v1::Generation::Stub> generation_;
  std::unique_ptr<v1::Cache::Stub> cache_;
  std::unique_ptr<v1::Admin::Stub> admin_;
};

// What the server at the channel's end says of a service; SERVICE_UNKNOWN when it answers with an error.
grpc::health::v1::HealthCheckResponse::ServingStatus HealthOf(const std::shared_ptr<grpc::Channel>& channel,
                                                              const std::string& service);
// Asks until the answer is `status`, at most some thousand times; false if it never was.
bool PollHealth(const std::shared_ptr<grpc::Channel>& channel, const std::string& service,
                grpc::health::v1::HealthCheckResponse::ServingStatus status);

// A greedy request for `text`.
v1::GenerateRequest TextRequest(const std::string& text);

}  // namespace quire::testing
