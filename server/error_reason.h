#pragma once

#include <string>

#include "absl/status/status.h"

namespace quire {

// What every error says of itself to programs, over every protocol: ErrorInfo.reason, and a label of metrics. They
// stay as they are from version to version.
inline constexpr const char* kErrorReasons[] = {
    "CANCELLED",  "INVALID_ARGUMENT", "DEADLINE_EXCEEDED", "NOT_FOUND",     "PERMISSION_DENIED", "UNAUTHENTICATED",
    "OVERLOADED", "RATE_LIMITED",     "UNAVAILABLE",       "UNIMPLEMENTED", "INTERNAL",
};

// One of them. `status` is an error.
const char* ReasonOf(const absl::Status& status);

// RESOURCE_EXHAUSTED that is the caller's own doing, not the server's load: RATE_LIMITED.
absl::Status AsRateLimited(absl::Status status);

// `text` as an answer may hold it that tells of an error: UTF-8, and not much. Errors repeat what they refuse, and what
// gRPC sends at the end of a call must be small.
std::string ShortText(std::string text);

}  // namespace quire
