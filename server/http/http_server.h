#pragma once

#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "engine/base/clock.h"
#include "server/grpc/cache_service.h"
#include "server/http/cross_origin.h"
#include "server/http/http_body.h"
#include "server/http/http_listener.h"
#include "server/http/openai_service.h"
#include "server/life/serving_state.h"
#include "server/metrics/metrics.h"
#include "server/security/authenticator.h"
#include "server/security/reloadable_file.h"
#include "server/security/tls.h"

namespace quire {

// What the HTTP front stands before. What pointers name must outlive it.
struct HttpServerParts {
  OpenAiService* openai = nullptr;
  const ServingState* serving = nullptr;
  const Metrics* metrics = nullptr;
  Authenticator* authenticator = nullptr;
  CacheService* cache = nullptr;
  ReloadableFile<TlsContext>* tls = nullptr;  // null: no TLS
  CrossOrigin cross_origin;
};

// The HTTP front: OpenAI's API, health, metrics, the cache's statistics and a page to try the model on. All but health,
// metrics and the page itself needs what the authenticator asks for.
class HttpServer {
 public:
  // Serves on `address`, HOST:PORT, from here on. INVALID_ARGUMENT if it can't be bound.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address, const HttpLimits& limits,
                                                           const HttpServerParts& parts);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // HOST:PORT, with the port that was bound.
  const std::string& address() const { return address_; }

  // Takes no further request, and waits up to `timeout` for the last bytes of answers.
  void Stop(Duration timeout);

 private:
  HttpServer(const HttpLimits& limits, const HttpServerParts& parts);

  absl::Status Bind(const std::string& address);
  void AddApi();
  void AddOperation();
  // Routes for callers who are known: `handle` is a function (request, caller, response), and for a POST, whose body is
  // JSON, (request, caller, body, response).
  template <typename Handle>
  void Get(const std::string& path, Handle handle);
  template <typename Handle>
  void Post(const std::string& path, Handle handle);
  // Counts it among the refused requests, and answers with it.
  void Refuse(const absl::Status& status, httplib::Response& response) const;

  const HttpServerParts parts_;
  BodyMemory body_memory_;
  HttpListener listener_;
  std::string address_;
  std::thread thread_;  // accepts connections
};

}  // namespace quire
