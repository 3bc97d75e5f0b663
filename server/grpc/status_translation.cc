#include "server/grpc/status_translation.h"

#include <chrono>
#include <string>

#include "engine/base/status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/error_reason.h"

namespace quire {
namespace {

// gRPC's codes are absl's. What the caller cannot act on is told as INTERNAL.
grpc::StatusCode CodeOf(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kOutOfRange: return grpc::StatusCode::INVALID_ARGUMENT;
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kInvalidArgument:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kNotFound:
    case absl::StatusCode::kPermissionDenied:
    case absl::StatusCode::kUnauthenticated:
    case absl::StatusCode::kResourceExhausted:
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kUnimplemented: return static_cast<grpc::StatusCode>(status.code());
    default: return grpc::StatusCode::INTERNAL;
  }
}

google::protobuf::Duration ToProtoDuration(std::chrono::milliseconds delay) {
  google::protobuf::Duration duration;
  duration.set_seconds(delay.count() / 1000);
  duration.set_nanos(static_cast<int32_t>(delay.count() % 1000) * 1'000'000);
  return duration;
}

}  // namespace

grpc::Status ToGrpcStatus(const absl::Status& status) {
  if (status.ok()) return grpc::Status::OK;
  const grpc::StatusCode code = CodeOf(status);
  const std::string message = ShortText(std::string(status.message()));

  google::rpc::Status details;
  details.set_code(code);
  details.set_message(message);
  if (const auto field = FieldOf(status)) {
    google::rpc::BadRequest bad_request;
    google::rpc::BadRequest::FieldViolation* violation = bad_request.add_field_violations();
    violation->set_field(ShortText(*field));
    violation->set_description(message);
    details.add_details()->PackFrom(bad_request);
  }
  if (const auto delay = RetryDelayOf(status)) {
    google::rpc::RetryInfo retry_info;
    *retry_info.mutable_retry_delay() = ToProtoDuration(*delay);
    details.add_details()->PackFrom(retry_info);
  }
  google::rpc::ErrorInfo error_info;
  error_info.set_reason(ReasonOf(status));
  error_info.set_domain("quire");
  details.add_details()->PackFrom(error_info);
  return grpc::Status(code, message, details.SerializeAsString());
}

}  // namespace quire
