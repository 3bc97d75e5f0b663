#include "server/http/http_server.h"

#include <sys/socket.h>

#include <exception>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "engine/base/log.h"
#include "engine/base/status.h"
#include "server/http/chat_page.h"
#include "server/http/http_error.h"
#include "server/http/json_text.h"
#include "server/messages/proto_json.h"
#include "server/security/loopback.h"
#include "server/serving_memory.h"

namespace quire {
namespace {

using HttpRequest = httplib::Request;
using HttpResponse = httplib::Response;
using Json = nlohmann::json;

constexpr const char* kJsonType = "application/json";
constexpr const char* kMetricsType = "text/plain; version=0.0.4; charset=utf-8";

void SetJson(const Json& json, HttpResponse& response) { response.set_content(ToText(json), kJsonType); }

void SetJsonOrError(const absl::StatusOr<Json>& json, HttpResponse& response) {
  json.ok() ? SetJson(*json, response) : SetError(json.status(), response);
}

CallOrigin OriginOf(const HttpRequest& request) {
  return {.metadata = [&request](std::string_view key) -> std::optional<std::string> {
            const std::string name(key);
            if (!request.has_header(name)) return std::nullopt;
            std::string value = request.get_header_value(name);
            for (size_t i = 1; i < request.get_header_value_count(name); ++i) {
              value += StrCat(", ", request.get_header_value(name, "", i));
            }
            return value;
          },
          .is_loopback = IsLoopbackIp(request.remote_addr)};
}

// What httplib itself refuses.
void ExplainError(const HttpRequest& request, HttpResponse& response) {
  if (!response.body.empty()) return;
  switch (response.status) {
    case 404: return SetError(404, StrCat("no such path: ", request.method, " ", request.path), response);
    case 413: return SetError(413, "the request's body is larger than --http-max-body-bytes allows", response);
    case 414: return SetError(414, "the request's path is too long", response);
    case 431: return SetError(431, "the request's headers are too long or too many", response);
    default: return SetError(response.status, "the request is not HTTP that this server understands", response);
  }
}

void ExplainException(const HttpRequest& request, HttpResponse& response, std::exception_ptr exception) {
  try {
    std::rethrow_exception(exception);
  } catch (const std::exception& error) {
    log::Error("HTTP {} {}: {}", request.method, request.path, error.what());
  } catch (...) {
    log::Error("HTTP {} {}: an unknown exception", request.method, request.path);
  }
  SetError(500, "an error of the server's own; its log has more", response);
}

constexpr int kBacklog = 1024;

void SetAddressOptions(socket_t socket) {
  // Two servers on one port would share its connections in silence, so no SO_REUSEPORT, which httplib would set.
  const int on = 1;
  setsockopt(socket, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
}

}  // namespace

absl::StatusOr<std::unique_ptr<HttpServer>> HttpServer::Start(const std::string& address, const HttpLimits& limits,
                                                              const HttpServerParts& parts) {
  std::unique_ptr<HttpServer> server(new HttpServer(limits, parts));
  QUIRE_RETURN_IF_ERROR(server->Bind(address));
  server->listener_.set_pre_routing_handler(
      [&origins = server->parts_.cross_origin](const HttpRequest& request, HttpResponse& response) {
        return origins.Check(request, response);
      });
  server->listener_.set_error_handler(
      [](const HttpRequest& request, HttpResponse& response) { ExplainError(request, response); });
  server->listener_.set_exception_handler(ExplainException);
  server->AddApi();
  server->AddOperation();
  server->thread_ = std::thread([listener = &server->listener_] { listener->listen_after_bind(); });
  server->listener_.wait_until_ready();
  return server;
}

HttpServer::HttpServer(const HttpLimits& limits, const HttpServerParts& parts)
    : parts_(parts), body_memory_(kHttpBodyBytes), listener_(limits, parts.tls) {}

HttpServer::~HttpServer() { Stop(Duration::zero()); }

void HttpServer::Stop(Duration timeout) {
  if (!thread_.joinable()) return;
  listener_.Stop(timeout);
  thread_.join();
}

absl::Status HttpServer::Bind(const std::string& address) {
  const size_t colon = address.rfind(':');
  const std::string host = HostOf(address);
  int port = 0;
  const bool is_number = absl::SimpleAtoi(address.substr(colon + 1), &port);
  socket_t socket = INVALID_SOCKET;
  listener_.set_socket_options([&socket](socket_t new_socket) {
    socket = new_socket;
    SetAddressOptions(new_socket);
  });
  if (is_number && port == 0)
    port = listener_.bind_to_any_port(host);
  else if (!is_number || !listener_.bind_to_port(host, port))
    port = -1;
  if (port <= 0) return InvalidArgument("http_listen", address, "an address of this machine whose port is not in use");
  // httplib lets five connections wait to be accepted.
  listen(socket, kBacklog);
  address_ = StrCat(address.substr(0, colon), ":", port);
  return absl::OkStatus();
}

template <typename Handle>
void HttpServer::Get(const std::string& path, Handle handle) {
  listener_.Get(path, [this, handle](const HttpRequest& request, HttpResponse& response) {
    const absl::StatusOr<Caller> caller = parts_.authenticator->Authenticate(OriginOf(request));
    caller.ok() ? handle(request, *caller, response) : SetError(caller.status(), response);
  });
}

template <typename Handle>
void HttpServer::Post(const std::string& path, Handle handle) {
  listener_.Post(path, [this, handle](const HttpRequest& request, HttpResponse& response,
                                      const httplib::ContentReader& reader) {
    const absl::StatusOr<Caller> caller = parts_.authenticator->Authenticate(OriginOf(request));
    if (!caller.ok()) {
      // Bytes that stay unread would be taken for the connection's next request.
      reader([](const char*, size_t) { return true; });
      return Refuse(caller.status(), response);
    }
    const absl::StatusOr<Json> body = ReadJsonBody(request, reader, parts_.openai->max_json_values(), &body_memory_);
    if (body.ok()) return handle(request, *caller, *body, response);
    // httplib has set the answer to a body that is too large.
    response.status < 400 ? Refuse(body.status(), response) : parts_.metrics->requests().CountRefusal(body.status());
  });
}

void HttpServer::Refuse(const absl::Status& status, HttpResponse& response) const {
  parts_.metrics->requests().CountRefusal(status);
  SetError(status, response);
}

void HttpServer::AddApi() {
  const auto complete = [this](OpenAiKind kind) {
    return [this, kind](const HttpRequest& request, const Caller& caller, const Json& body, HttpResponse& response) {
      parts_.openai->Complete(kind, request, caller, body, response);
    };
  };
  Post("/v1/chat/completions", complete(OpenAiKind::kChat));
  Post("/v1/completions", complete(OpenAiKind::kCompletion));
  Post("/tokenize", [this](const HttpRequest&, const Caller&, const Json& body, HttpResponse& response) {
    SetJsonOrError(parts_.openai->Tokenize(body), response);
  });
  Post("/detokenize", [this](const HttpRequest&, const Caller&, const Json& body, HttpResponse& response) {
    SetJsonOrError(parts_.openai->Detokenize(body), response);
  });
  Get("/v1/models", [this](const HttpRequest&, const Caller&, HttpResponse& response) {
    SetJson(parts_.openai->ListModels(), response);
  });
  Get("/v1/models/(.+)", [this](const HttpRequest& request, const Caller&, HttpResponse& response) {
    SetJsonOrError(parts_.openai->GetModel(request.matches[1]), response);
  });
  Get("/v1/cache", [this](const HttpRequest&, const Caller& caller, HttpResponse& response) {
    response.set_header("Cache-Control", "no-store");
    const absl::StatusOr<v1::CacheStats> stats = parts_.cache->ReadStatsFor(caller, /*with_requests=*/true);
    stats.ok() ? SetJson(ToJson(*stats), response) : SetError(stats.status(), response);
  });
}

// For machines that watch this one, and have no key.
void HttpServer::AddOperation() {
  listener_.Get("/metrics", [this](const HttpRequest&, HttpResponse& response) {
    const absl::StatusOr<std::string> text = parts_.metrics->Text();
    text.ok() ? response.set_content(*text, kMetricsType) : SetError(text.status(), response);
  });
  // Restarting helps against a hang, not against draining.
  listener_.Get("/health", [this](const HttpRequest&, HttpResponse& response) {
    if (parts_.serving->stalled()) return SetError(503, "the engine hangs", response);
    SetJson({{"status", "ok"}}, response);
  });
  listener_.Get("/ready", [this](const HttpRequest&, HttpResponse& response) {
    if (!parts_.serving->serving()) return SetError(503, "the server drains or its engine hangs", response);
    SetJson({{"status", "ok"}}, response);
  });
  listener_.Get("/", [](const HttpRequest&, HttpResponse& response) {
    response.set_header(
        "Content-Security-Policy",
        "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src 'self'");
    response.set_content(std::string(kChatPage), "text/html; charset=utf-8");
  });
}

}  // namespace quire
