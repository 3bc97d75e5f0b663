#include "server/http/http_error.h"

#include <chrono>
#include <format>
#include <optional>

#include "engine/base/status.h"
#include "server/error_reason.h"
#include "server/http/json_text.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr const char* kJsonType = "application/json";

struct Row {
  absl::StatusCode status_code;
  int http_code;
};

constexpr Row kTable[] = {
    {absl::StatusCode::kInvalidArgument, 400}, {absl::StatusCode::kOutOfRange, 400},
    {absl::StatusCode::kUnauthenticated, 401}, {absl::StatusCode::kPermissionDenied, 403},
    {absl::StatusCode::kNotFound, 404},        {absl::StatusCode::kResourceExhausted, 429},
    {absl::StatusCode::kCancelled, 499},       {absl::StatusCode::kUnimplemented, 501},
    {absl::StatusCode::kUnavailable, 503},     {absl::StatusCode::kDeadlineExceeded, 504},
};

// OpenAI's words for kinds of errors.
const char* TypeOf(int http_code) {
  switch (http_code) {
    case 401: return "authentication_error";
    case 403: return "permission_error";
    case 404: return "not_found_error";
    case 429: return "rate_limit_error";
    case 503: return "overloaded_error";
    case 504: return "timeout_error";
    default: return http_code < 500 ? "invalid_request_error" : "server_error";
  }
}

Json MakeErrorObject(int http_code, const std::string& message, const std::optional<std::string>& field) {
  return {{"error",
           {{"message", ShortText(message)},
            {"type", TypeOf(http_code)},
            {"param", field ? Json(ShortText(*field)) : Json()},
            {"code", http_code}}}};
}

}  // namespace

int HttpCodeOf(const absl::Status& status) {
  if (status.ok()) return 200;
  for (const Row& row : kTable) {
    if (row.status_code == status.code()) return row.http_code;
  }
  return 500;
}

Json ErrorObject(const absl::Status& status) {
  return MakeErrorObject(HttpCodeOf(status), std::string(status.message()), FieldOf(status));
}

Json ErrorObject(int http_code, const std::string& message) {
  return MakeErrorObject(http_code, message, std::nullopt);
}

void SetError(const absl::Status& status, httplib::Response& response) {
  if (absl::IsUnauthenticated(status)) response.set_header("WWW-Authenticate", "Bearer");
  response.status = HttpCodeOf(status);
  response.set_content(ToText(ErrorObject(status)), kJsonType);
  if (const auto delay = RetryDelayOf(status)) {
    response.set_header("Retry-After", std::to_string(std::chrono::ceil<std::chrono::seconds>(*delay).count()));
  }
}

void SetError(int http_code, const std::string& message, httplib::Response& response) {
  response.status = http_code;
  response.set_content(ToText(ErrorObject(http_code, message)), kJsonType);
}

std::string TooManyConnections(int64_t max_connections) {
  const std::string body = ToText(ErrorObject(
      503, std::format("{} HTTP connections are open, as many as --http-max-connections allows", max_connections)));
  return std::format(
      "HTTP/1.1 503 Service Unavailable\r\nContent-Type: {}\r\nContent-Length: {}\r\nRetry-After: 1\r\n"
      "Connection: close\r\n\r\n{}",
      kJsonType, body.size(), body);
}

}  // namespace quire
