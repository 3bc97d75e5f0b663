#include "server/status_translation.h"

#include <chrono>
#include <string>

#include "engine/base/status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace quire {
namespace {

struct Row {
  absl::StatusCode from;
  grpc::StatusCode to;
  const char* reason;
};

constexpr Row kTable[] = {
    {absl::StatusCode::kCancelled, grpc::StatusCode::CANCELLED, "CANCELLED"},
    {absl::StatusCode::kInvalidArgument, grpc::StatusCode::INVALID_ARGUMENT, "INVALID_ARGUMENT"},
    {absl::StatusCode::kOutOfRange, grpc::StatusCode::INVALID_ARGUMENT, "INVALID_ARGUMENT"},
    {absl::StatusCode::kDeadlineExceeded, grpc::StatusCode::DEADLINE_EXCEEDED, "DEADLINE_EXCEEDED"},
    {absl::StatusCode::kNotFound, grpc::StatusCode::NOT_FOUND, "NOT_FOUND"},
    {absl::StatusCode::kPermissionDenied, grpc::StatusCode::PERMISSION_DENIED, "PERMISSION_DENIED"},
    {absl::StatusCode::kUnauthenticated, grpc::StatusCode::UNAUTHENTICATED, "UNAUTHENTICATED"},
    {absl::StatusCode::kResourceExhausted, grpc::StatusCode::RESOURCE_EXHAUSTED, "OVERLOADED"},
    {absl::StatusCode::kUnavailable, grpc::StatusCode::UNAVAILABLE, "UNAVAILABLE"},
    {absl::StatusCode::kUnimplemented, grpc::StatusCode::UNIMPLEMENTED, "UNIMPLEMENTED"},
};
// Whatever else the engine says is its own failure, not the caller's.
constexpr Row kInternal = {absl::StatusCode::kInternal, grpc::StatusCode::INTERNAL, "INTERNAL"};

const Row& RowOf(absl::StatusCode code) {
  for (const Row& row : kTable) {
    if (row.from == code) return row;
  }
  return kInternal;
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
  const Row& row = RowOf(status.code());
  const std::string message(status.message());

  google::rpc::Status details;
  details.set_code(row.to);
  details.set_message(message);
  if (const auto field = FieldOf(status)) {
    google::rpc::BadRequest bad_request;
    google::rpc::BadRequest::FieldViolation* violation = bad_request.add_field_violations();
    violation->set_field(*field);
    violation->set_description(message);
    details.add_details()->PackFrom(bad_request);
  }
  if (const auto delay = RetryDelayOf(status)) {
    google::rpc::RetryInfo retry_info;
    *retry_info.mutable_retry_delay() = ToProtoDuration(*delay);
    details.add_details()->PackFrom(retry_info);
  }
  google::rpc::ErrorInfo error_info;
  error_info.set_reason(row.reason);
  error_info.set_domain("quire");
  details.add_details()->PackFrom(error_info);
  return grpc::Status(row.to, message, details.SerializeAsString());
}

}  // namespace quire
