#include "server/error_reason.h"

#include "absl/strings/cord.h"
#include "engine/text/utf8.h"

namespace quire {
namespace {

constexpr size_t kMaxTextBytes = 1000;
constexpr char kRateLimitedPayload[] = "quire/rate_limited";

}  // namespace

const char* ReasonOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kCancelled: return "CANCELLED";
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kOutOfRange: return "INVALID_ARGUMENT";
    case absl::StatusCode::kDeadlineExceeded: return "DEADLINE_EXCEEDED";
    case absl::StatusCode::kNotFound: return "NOT_FOUND";
    case absl::StatusCode::kPermissionDenied: return "PERMISSION_DENIED";
    case absl::StatusCode::kUnauthenticated: return "UNAUTHENTICATED";
    case absl::StatusCode::kResourceExhausted:
      return status.GetPayload(kRateLimitedPayload) ? "RATE_LIMITED" : "OVERLOADED";
    case absl::StatusCode::kUnavailable: return "UNAVAILABLE";
    case absl::StatusCode::kUnimplemented: return "UNIMPLEMENTED";
    default: return "INTERNAL";  // whatever else the engine says is its own failure, not the caller's
  }
}

absl::Status AsRateLimited(absl::Status status) {
  status.SetPayload(kRateLimitedPayload, absl::Cord("1"));
  return status;
}

std::string ShortText(std::string text) {
  const bool is_cut = text.size() > kMaxTextBytes;
  if (is_cut) text.resize(kMaxTextBytes);
  std::string result;
  MoveUtf8(text, /*is_last=*/!is_cut, result);
  return is_cut ? result + "..." : result;
}

}  // namespace quire
