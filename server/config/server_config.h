#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/runtime/engine_config.h"
#include "server/security/rate_limiter.h"
#include "server/security/tls.h"

namespace quire {

// Everything quire-server can be told. Each setting has one name: `max_num_seqs` in a configuration file,
// `--max-num-seqs` as a flag; README.md of this folder lists them.
struct ServerConfig {
  std::string model;                            // path of the model file
  std::string served_model_name;                // empty: the file's name without its extension
  std::string grpc_listen = "127.0.0.1:50051";  // HOST:PORT; port 0 is a free one
  std::string http_listen;                      // the same; empty: no HTTP
  int64_t http_max_connections = 64;            // open at once; each has a thread
  int64_t http_max_body_bytes = 4 << 20;        // of a request
  double http_request_seconds = 15;             // for all of a request to come in
  double http_idle_seconds = 60;                // between the requests of a connection
  std::string http_allowed_origins;             // whose pages may ask; with commas between; "*": all
  int64_t grpc_max_connections = 256;           // open at once; more are closed at once
  int64_t grpc_max_concurrent_streams = 1024;   // calls at once on a connection; more wait for one to end
  double grpc_max_connection_age_seconds = 0;   // then a connection takes no further call; 0: any age
  EngineConfig engine;
  int64_t text_threads = 2;                   // >= 2: one detokenizes, the others tokenize
  std::string log_level = "info";             // debug, info, warning, error, off
  std::string log_format = "text";            // or json
  bool log_prompts = false;                   // prompts' text in the log
  double drain_seconds = 30;                  // what running requests get after SIGTERM
  int64_t max_stream_buffer_bytes = 4 << 20;  // that wait for a stream's reader
  double stall_seconds = 30;                  // without the end of a step while work waits
  std::string api_keys;                       // path of the file with callers' keys; empty: callers need none
  bool allow_unauthenticated = false;         // serve other machines without keys
  TlsFiles tls;                               // of both listeners; empty: no TLS
  RateLimitsByTenant rate_limits;

  // The name that requests use.
  std::string model_name() const;

  // As a configuration file: JSON with every setting.
  std::string ToJson() const;
};

// What the command line asks for.
struct CommandLine {
  enum class Action { kServe, kPrint, kInspect, kDryRun };

  Action action = Action::kServe;
  ServerConfig config;
  std::string text;      // kPrint: help, version or configuration; kInspect: the model's path
  bool as_json = false;  // kDryRun
};

// Defaults, overlaid by the file of --config, overlaid by flags. INVALID_ARGUMENT names the key or flag, the value and
// the accepted range.
absl::StatusOr<CommandLine> ParseCommandLine(int argc, const char* const* argv);

// Overlays `config` with a configuration file's text: a JSON object, comments allowed. `path` is for messages.
absl::Status ApplyConfigText(const std::string& text, const std::string& path, ServerConfig* config);

}  // namespace quire
