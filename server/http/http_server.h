#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "engine/base/clock.h"
#include "quire/v1/cache.pb.h"
#include "server/http/http_body.h"
#include "server/http/http_listener.h"
#include "server/http/openai_service.h"
#include "server/metrics/metrics.h"
#include "server/serving_state.h"

namespace quire {

// The HTTP front: OpenAI's API, health, metrics, the cache's statistics and a page to try the model on.
class HttpServer {
 public:
  using ReadCacheStats = std::function<absl::StatusOr<v1::CacheStats>()>;

  // Serves on `address`, HOST:PORT, from here on. INVALID_ARGUMENT if it can't be bound. What the pointers name must
  // outlive the server; `read_cache_stats` is called on connections' threads.
  static absl::StatusOr<std::unique_ptr<HttpServer>> Start(const std::string& address, const HttpLimits& limits,
                                                           OpenAiService* openai, const ServingState* serving,
                                                           const Metrics* metrics, ReadCacheStats read_cache_stats);
  ~HttpServer();
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // HOST:PORT, with the port that was bound.
  const std::string& address() const { return address_; }

  // Takes no further request, and waits up to `timeout` for the last bytes of answers.
  void Stop(Duration timeout);

 private:
  HttpServer(const HttpLimits& limits, OpenAiService* openai, const ServingState* serving, const Metrics* metrics,
             ReadCacheStats read_cache_stats);

  absl::Status Bind(const std::string& address);
  void AddRoutes();
  // A route whose body is JSON: `handle` is a function (request, body, response).
  template <typename Handle>
  void Post(const std::string& path, Handle handle);

  OpenAiService* const openai_;
  const ServingState* const serving_;
  const Metrics* const metrics_;
  const ReadCacheStats read_cache_stats_;
  BodyMemory body_memory_;
  HttpListener listener_;
  std::string address_;
  std::thread thread_;  // accepts connections
};

}  // namespace quire
