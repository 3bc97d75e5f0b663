#include "server/config/server_settings.h"

#include <nlohmann/json.hpp>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "engine/base/status.h"
#include "server/config/setting_kinds.h"
#include "server/config/tenant_setting.h"
#include "server/security/allowed_origins.h"
#include "server/shown_json.h"

namespace quire {
namespace {

using Json = nlohmann::json;

absl::Status CheckBlockSize(const Json& value) {
  for (const int64_t accepted : {16, 32, 64}) {
    if (value == accepted) return absl::OkStatus();
  }
  return InvalidArgument("block_size", ShownJson(value), "16, 32 or 64");
}

ServerSetting BlockSize() {
  auto set = [](const Json& value, ServerConfig* config) {
    QUIRE_RETURN_IF_ERROR(CheckBlockSize(value));
    config->engine.block_size = value.get<int64_t>();
    return absl::OkStatus();
  };
  auto get = [](const ServerConfig& config) { return Json(config.engine.block_size); };
  return {"block_size", "16|32|64", "Tokens of a KV cache block.", std::move(set), std::move(get)};
}

std::vector<ServerSetting> ServingSettings() {
  return {
      TextSetting("model", "PATH", "The model file (GGUF). Required.",
                  [](ServerConfig& c) -> std::string& { return c.model; }),
      TextSetting("served_model_name", "NAME",
                  "The model's name in the API; empty: the file's name without its extension.",
                  [](ServerConfig& c) -> std::string& { return c.served_model_name; }),
      TextSetting(
          "grpc_listen", "HOST:PORT", "Where to serve gRPC. Port 0 is a free one; the ready line shows it.",
          [](ServerConfig& c) -> std::string& { return c.grpc_listen; },
          [](const std::string& address) { return CheckListenAddress("grpc_listen", address); }),
      TextSetting(
          "http_listen", "HOST:PORT",
          "Where to serve HTTP: OpenAI's API, health, the cache's statistics and a page to chat on; empty: nowhere.",
          [](ServerConfig& c) -> std::string& { return c.http_listen; },
          [](const std::string& address) {
            return address.empty() ? absl::OkStatus() : CheckListenAddress("http_listen", address);
          }),
      IntegerSetting("http_max_connections",
                     "Most HTTP connections open at once, in [1, 4096]; each has a thread; more get 503.", 1, 4096,
                     [](ServerConfig& c) -> int64_t& { return c.http_max_connections; }),
      BytesSetting("http_max_body_bytes", "Largest body of an HTTP request, as bytes or \"4MiB\"; larger ones get 413.",
                   [](ServerConfig& c) -> int64_t& { return c.http_max_body_bytes; }),
      NumberSetting("http_request_seconds", "SECONDS",
                    "In which all of an HTTP request must come in, or its connection is closed; in [0.1, 3600].", 0.1,
                    3600, [](ServerConfig& c) -> double& { return c.http_request_seconds; }),
      NumberSetting("http_idle_seconds", "SECONDS",
                    "How long an HTTP connection may stay without a request; in [0.1, 86400].", 0.1, 86400,
                    [](ServerConfig& c) -> double& { return c.http_idle_seconds; }),
      TextSetting(
          "http_allowed_origins", "ORIGINS",
          "Sites whose pages may ask over HTTP (CORS): SCHEME://HOST[:PORT] with commas between, or *; empty: none.",
          [](ServerConfig& c) -> std::string& { return c.http_allowed_origins; },
          [](const std::string& origins) { return AllowedOrigins::Parse("http_allowed_origins", origins).status(); }),
      IntegerSetting("grpc_max_connections",
                     "Most gRPC connections open at once, in [1, 100000], each of many calls; more are closed at once.",
                     1, 100000, [](ServerConfig& c) -> int64_t& { return c.grpc_max_connections; }),
      IntegerSetting("grpc_max_concurrent_streams",
                     "Most calls at once on a gRPC connection, in [1, 1000000]; a client's further ones wait there.", 1,
                     1000000, [](ServerConfig& c) -> int64_t& { return c.grpc_max_concurrent_streams; }),
      NumberSetting(
          "grpc_max_connection_age_seconds", "SECONDS",
          "After which a gRPC connection takes no further calls, so that clients spread over new servers; its "
          "calls go on; in [0, 1000000]; 0: any age.",
          0, 1000000, [](ServerConfig& c) -> double& { return c.grpc_max_connection_age_seconds; }),
      IntegerSetting("text_threads", "Threads of the text layer, in [2, 64]: one detokenizes, the others tokenize.", 2,
                     64, [](ServerConfig& c) -> int64_t& { return c.text_threads; }),
      ChoiceSetting("log_level", {"debug", "info", "warning", "error", "off"}, "What is logged to standard error.",
                    [](ServerConfig& c) -> std::string& { return c.log_level; }),
      ChoiceSetting("log_format", {"text", "json"}, "Lines for people, or a JSON object a line.",
                    [](ServerConfig& c) -> std::string& { return c.log_format; }),
      SwitchSetting("log_prompts", "Log the text of prompts too.",
                    [](ServerConfig& c) -> bool& { return c.log_prompts; }),
      NumberSetting("drain_seconds", "SECONDS",
                    "After SIGTERM or Ctrl-C, what running requests get to finish; in [0, 3600]. A second signal ends "
                    "the server at once.",
                    0, 3600, [](ServerConfig& c) -> double& { return c.drain_seconds; }),
      BytesSetting("max_stream_buffer_bytes",
                   "What may wait to be read by a stream's caller, as bytes or \"4MiB\"; a reader further behind is "
                   "ended with RESOURCE_EXHAUSTED.",
                   [](ServerConfig& c) -> int64_t& { return c.max_stream_buffer_bytes; }),
      NumberSetting("stall_seconds", "SECONDS",
                    "Health says NOT_SERVING when work waits and no step has ended for this long, or for five times "
                    "what a step is predicted to take, if more; in [0.1, 86400].",
                    0.1, 86400, [](ServerConfig& c) -> double& { return c.stall_seconds; }),
  };
}

std::vector<ServerSetting> SecuritySettings() {
  return {
      TextSetting("api_keys", "PATH",
                  "File with the hashes of callers' API keys (\"quire-server new-key\" makes one); read again when it "
                  "changes; empty: callers need no key.",
                  [](ServerConfig& c) -> std::string& { return c.api_keys; }),
      SwitchSetting("allow_unauthenticated",
                    "Serve other machines though there are neither API keys nor client certificates.",
                    [](ServerConfig& c) -> bool& { return c.allow_unauthenticated; }),
      TextSetting("tls_certificate", "PATH",
                  "The server's certificate chain (PEM), for gRPC and HTTP; read again when it changes; empty: no TLS.",
                  [](ServerConfig& c) -> std::string& { return c.tls.certificate; }),
      TextSetting("tls_key", "PATH", "The certificate's private key (PEM).",
                  [](ServerConfig& c) -> std::string& { return c.tls.key; }),
      TextSetting("tls_client_ca", "PATH",
                  "Certificates (PEM) of which clients must have one; empty: clients need no certificate.",
                  [](ServerConfig& c) -> std::string& { return c.tls.client_ca; }),
  };
}

std::vector<ServerSetting> EngineSettings() {
  return {
      IntegerOrAutoSetting(
          "max_model_len",
          "Most tokens of a request, prompt and output together, in [256, 16777216] or the model's length "
          "if less; auto: the largest that fits.",
          1, 16777216, [](ServerConfig& c) -> std::optional<int64_t>& { return c.engine.max_model_len; }),
      IntegerOrAutoSetting("max_num_batched_tokens",
                           "Most tokens computed in a step, in [16, 65536]; auto: up to 512, as many as take at most "
                           "target_step_ms while requests decode.",
                           16, 65536,
                           [](ServerConfig& c) -> std::optional<int64_t>& { return c.engine.max_num_batched_tokens; }),
      IntegerSetting("max_num_seqs", "Most requests running at once, in [1, 4096].", 1, 4096,
                     [](ServerConfig& c) -> int64_t& { return c.engine.max_num_seqs; }),
      BlockSize(),
      ChoiceSetting("weight_type", {"auto", "f32", "bf16", "int8"},
                    "How weights are stored; auto: as the file has them; int8: with a scale for each output feature.",
                    [](ServerConfig& c) -> std::string& { return c.engine.weight_type; }),
      ChoiceSetting("compute_type", {"auto", "f32", "bf16", "int8"},
                    "What matmuls compute in; auto: the fastest at load that is no less accurate than the weights.",
                    [](ServerConfig& c) -> std::string& { return c.engine.compute_type; }),
      TextSetting("kernel_times_file", "PATH",
                  "Keeps what kernels took when they were measured, so that later starts on such a machine choose the "
                  "same ones, sooner; written if it is not there or of another machine; empty: measure at each start.",
                  [](ServerConfig& c) -> std::string& { return c.engine.kernel_times_file; }),
      SwitchSetting("deterministic",
                    "Give a request the same tokens alone and in any batch: kernels that do not depend on its size.",
                    [](ServerConfig& c) -> bool& { return c.engine.deterministic; }),
      ChoiceSetting("kv_cache_dtype", {"auto", "f32", "bf16", "int8"},
                    "How the KV cache is stored; int8: with a scale for each token and head; auto: bf16.",
                    [](ServerConfig& c) -> std::string& { return c.engine.kv_cache_dtype; }),
      BytesOrAutoSetting(
          "memory_budget",
          "The hard limit of the process, as bytes or \"2GiB\"; auto: the cgroup's limit, or what is needed.",
          [](ServerConfig& c) -> std::optional<int64_t>& { return c.engine.memory_budget_bytes; }),
      BytesOrAutoSetting("kv_cache_memory_bytes",
                         "Size of the KV cache, as bytes or \"2GiB\"; auto: what the budget leaves.",
                         [](ServerConfig& c) -> std::optional<int64_t>& { return c.engine.kv_cache_memory_bytes; }),
      IntegerOrAutoSetting(
          "threads", "Compute threads, in [1, 1024]; auto: the least of affinity, cgroup quota and physical cores.", 1,
          1024, [](ServerConfig& c) -> std::optional<int64_t>& { return c.engine.num_threads; }),
  };
}

std::vector<ServerSetting> QueueSettings() {
  return {
      SwitchSetting("enable_prefix_caching",
                    "Keep the blocks of ended requests, so that prompts that begin alike are not computed again.",
                    [](ServerConfig& c) -> bool& { return c.engine.enable_prefix_caching; }),
      IntegerSetting("max_queued_requests",
                     "Most requests that wait to run, in [1, 1000000]; more are refused with RESOURCE_EXHAUSTED. An "
                     "eighth is kept for tenants without requests.",
                     1, 1000000, [](ServerConfig& c) -> int64_t& { return c.engine.max_queued_requests; }),
      IntegerSetting("max_queued_tokens",
                     "Most tokens of waiting requests together, in [1, 2^50]; a request that finds none waiting is "
                     "taken whatever its size.",
                     1, int64_t{1} << 50, [](ServerConfig& c) -> int64_t& { return c.engine.max_queued_tokens; }),
      NumberSetting(
          "target_step_ms", "MS",
          "With max_num_batched_tokens auto, what a step may take while requests decode; 64 tokens of prompts are "
          "computed even so; in [1, 60000].",
          1, 60000, [](ServerConfig& c) -> double& { return c.engine.target_step_ms; }),
      NumberSetting("priority_aging_seconds", "SECONDS",
                    "Waiting this long counts as one level of priority; in [0.001, 86400].", 0.001, 86400,
                    [](ServerConfig& c) -> double& { return c.engine.priority_aging_seconds; }),
      SwitchSetting("refuse_late_requests",
                    "Refuse a request with DEADLINE_EXCEEDED at once, if the queue ahead of it takes longer at the "
                    "measured rate than its deadline allows.",
                    [](ServerConfig& c) -> bool& { return c.engine.refuse_late_requests; }),
      TenantsSetting(),
  };
}

std::vector<ServerSetting> AllSettings() {
  std::vector<ServerSetting> settings = ServingSettings();
  for (auto& group : {SecuritySettings(), EngineSettings(), QueueSettings()})
    settings.insert(settings.end(), group.begin(), group.end());
  return settings;
}

}  // namespace

std::span<const ServerSetting> ServerSettings() {
  static const std::vector<ServerSetting> settings = AllSettings();
  return settings;
}

absl::Status CheckListenAddress(std::string_view field, const std::string& address) {
  const auto refuse = [&] {
    return InvalidArgument(field, StrCat("\"", address, "\""),
                           "HOST:PORT with the port in [0, 65535], and an IPv6 host in brackets");
  };
  const size_t colon = address.rfind(':');
  if (colon == std::string::npos || colon == 0) return refuse();
  const std::string host = address.substr(0, colon);
  const std::string port = address.substr(colon + 1);
  const bool bracketed = host.front() == '[' && host.back() == ']';
  if (!bracketed && host.find(':') != std::string::npos) return refuse();
  int port_number = -1;
  const bool digits = !port.empty() && port.find_first_not_of("0123456789") == std::string::npos;
  if (!digits || !absl::SimpleAtoi(port, &port_number) || port_number > 65535) return refuse();
  return absl::OkStatus();
}

}  // namespace quire
