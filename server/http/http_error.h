#pragma once

#include <httplib.h>

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/status.h"

namespace quire {

// How errors are told over HTTP: OpenAI's error object, and the code that its clients expect.
//   INVALID_ARGUMENT 400, UNAUTHENTICATED 401, PERMISSION_DENIED 403, NOT_FOUND 404, RESOURCE_EXHAUSTED 429,
//   CANCELLED 499, INTERNAL and others 500, UNIMPLEMENTED 501, UNAVAILABLE 503, DEADLINE_EXCEEDED 504

int HttpCodeOf(const absl::Status& status);

// {"error": {"message", "type", "param", "code"}}; `param` is the field that the status names.
nlohmann::json ErrorObject(const absl::Status& status);
// The same for an error that HTTP itself tells, by its code.
nlohmann::json ErrorObject(int http_code, const std::string& message);

// With Retry-After, in whole seconds, if the status has a retry delay.
void SetError(const absl::Status& status, httplib::Response& response);
void SetError(int http_code, const std::string& message, httplib::Response& response);

// A whole HTTP response, 503, for a connection past `max_connections`.
std::string TooManyConnections(int64_t max_connections);

}  // namespace quire
