#include "server/grpc/status_translation.h"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <utility>

#include "engine/base/status.h"
#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"
#include "server/http/http_error.h"

namespace quire {
namespace {

google::rpc::Status DetailsOf(const grpc::Status& status) {
  google::rpc::Status details;
  REQUIRE(details.ParseFromString(status.error_details()));
  return details;
}

template <typename Detail>
bool Find(const google::rpc::Status& status, Detail* detail) {
  for (const auto& any : status.details()) {
    if (any.UnpackTo(detail)) return true;
  }
  return false;
}

TEST_CASE("every code has its counterpart, and the rest is INTERNAL") {
  const std::pair<absl::StatusCode, grpc::StatusCode> table[] = {
      {absl::StatusCode::kCancelled, grpc::CANCELLED},
      {absl::StatusCode::kInvalidArgument, grpc::INVALID_ARGUMENT},
      {absl::StatusCode::kDeadlineExceeded, grpc::DEADLINE_EXCEEDED},
      {absl::StatusCode::kNotFound, grpc::NOT_FOUND},
      {absl::StatusCode::kPermissionDenied, grpc::PERMISSION_DENIED},
      {absl::StatusCode::kUnauthenticated, grpc::UNAUTHENTICATED},
      {absl::StatusCode::kResourceExhausted, grpc::RESOURCE_EXHAUSTED},
      {absl::StatusCode::kUnavailable, grpc::UNAVAILABLE},
      {absl::StatusCode::kUnimplemented, grpc::UNIMPLEMENTED},
      {absl::StatusCode::kInternal, grpc::INTERNAL},
      {absl::StatusCode::kDataLoss, grpc::INTERNAL},
      {absl::StatusCode::kUnknown, grpc::INTERNAL},
  };
  for (const auto& [from, to] : table) {
    const grpc::Status status = ToGrpcStatus(absl::Status(from, "what happened"));
    CHECK(status.error_code() == to);
    CHECK(status.error_message() == "what happened");
    CHECK(DetailsOf(status).code() == static_cast<int>(to));
    google::rpc::ErrorInfo info;
    REQUIRE(Find(DetailsOf(status), &info));
    CHECK(info.domain() == "quire");
    CHECK_FALSE(info.reason().empty());
  }
  CHECK(ToGrpcStatus(absl::OkStatus()).ok());
}

TEST_CASE("a field becomes a BadRequest") {
  const grpc::Status status = ToGrpcStatus(InvalidArgument("sampling.top_p", 2, "a number in (0, 1]"));
  google::rpc::BadRequest bad_request;
  REQUIRE(Find(DetailsOf(status), &bad_request));
  REQUIRE(bad_request.field_violations_size() == 1);
  CHECK(bad_request.field_violations(0).field() == "sampling.top_p");
  google::rpc::RetryInfo retry_info;
  CHECK_FALSE(Find(DetailsOf(status), &retry_info));
}

TEST_CASE("an error that repeats much stays small, and UTF-8") {
  const std::string much = "\xFF" + std::string(1 << 20, 'x');
  const grpc::Status status = ToGrpcStatus(InvalidArgument(much, std::string_view(much), "less"));
  CHECK(status.error_message().size() < 1100);
  CHECK(status.error_message().starts_with("\xEF\xBF\xBDxxx"));
  CHECK(status.error_details().size() < 4000);
  google::rpc::BadRequest bad_request;
  CHECK(Find(DetailsOf(status), &bad_request));
  CHECK(ErrorObject(absl::InvalidArgumentError(much)).dump().size() < 1200);
}

TEST_CASE("a delay becomes a RetryInfo") {
  const grpc::Status status = ToGrpcStatus(Overloaded("full", std::chrono::milliseconds(1500)));
  CHECK(status.error_code() == grpc::RESOURCE_EXHAUSTED);
  google::rpc::RetryInfo retry_info;
  REQUIRE(Find(DetailsOf(status), &retry_info));
  CHECK(retry_info.retry_delay().seconds() == 1);
  CHECK(retry_info.retry_delay().nanos() == 500'000'000);
}

}  // namespace
}  // namespace quire
