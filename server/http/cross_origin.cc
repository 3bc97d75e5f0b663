#include "server/http/cross_origin.h"

#include <string>

#include "server/http/http_error.h"
#include "server/security/loopback.h"

namespace quire {
namespace {

using httplib::Server;

constexpr int kNoContent = 204;

// Of the server's own page: at the host that the request is for.
bool IsOwn(const std::string& origin, const httplib::Request& request) {
  const size_t scheme_end = origin.find("://");
  return scheme_end != std::string::npos && origin.substr(scheme_end + 3) == request.get_header_value("Host");
}

// What a browser may send, and show to the page.
void Permit(const std::string& origin, httplib::Response& response) {
  response.set_header("Access-Control-Allow-Origin", origin);
  response.set_header("Vary", "Origin");
  response.set_header("Access-Control-Expose-Headers", "X-Request-Id, Retry-After");
}

void AnswerPreflight(httplib::Response& response) {
  response.status = kNoContent;
  response.set_header("Access-Control-Allow-Methods", "GET, POST");
  response.set_header("Access-Control-Allow-Headers",
                      "Authorization, Content-Type, X-Request-Id, X-Tenant-Id, Traceparent");
  response.set_header("Access-Control-Max-Age", "600");
}

}  // namespace

Server::HandlerResponse CrossOrigin::Check(const httplib::Request& request, httplib::Response& response) const {
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_header("X-Frame-Options", "DENY");
  const std::string host = request.get_header_value("Host");
  if (names_may_lie_ && !host.empty() && !IsIpOrLocalhost(HostOf(host))) {
    SetError(403, "Host: a server without keys is reached by an IP address or as localhost only", response);
    return Server::HandlerResponse::Handled;
  }
  const std::string origin = request.get_header_value("Origin");
  if (!request.has_header("Origin") || IsOwn(origin, request)) return Server::HandlerResponse::Unhandled;
  if (!origins_.Contains(origin)) {
    SetError(403, "Origin: requests of other sites' pages are refused (see --http-allowed-origins)", response);
    return Server::HandlerResponse::Handled;
  }
  Permit(origin, response);
  if (request.method != "OPTIONS") return Server::HandlerResponse::Unhandled;
  AnswerPreflight(response);
  return Server::HandlerResponse::Handled;
}

}  // namespace quire
