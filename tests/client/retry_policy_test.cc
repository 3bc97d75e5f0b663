#include "client/retry_policy.h"

#include <catch2/catch_test_macros.hpp>

#include "google/rpc/error_details.pb.h"
#include "google/rpc/status.pb.h"

namespace quire {
namespace {

using std::chrono::milliseconds;

grpc::Status Overloaded(int64_t seconds, int32_t nanos) {
  google::rpc::RetryInfo info;
  info.mutable_retry_delay()->set_seconds(seconds);
  info.mutable_retry_delay()->set_nanos(nanos);
  google::rpc::Status details;
  details.add_details()->PackFrom(google::rpc::ErrorInfo());
  details.add_details()->PackFrom(info);
  return grpc::Status(grpc::StatusCode::RESOURCE_EXHAUSTED, "queue full", details.SerializeAsString());
}

TEST_CASE("the server's wish is read from the details") {
  CHECK(RetryInfoDelay(Overloaded(2, 5'000'000)) == milliseconds(2005));
  CHECK(RetryInfoDelay(grpc::Status(grpc::StatusCode::UNAVAILABLE, "x")) == std::nullopt);
  CHECK(RetryInfoDelay(grpc::Status(grpc::StatusCode::UNAVAILABLE, "x", "\xff\xff")) == std::nullopt);
  CHECK(RetryInfoDelay(Overloaded(-1, 0)) == std::nullopt);
  CHECK(RetryInfoDelay(Overloaded(INT64_MAX, 0)) == milliseconds(24 * 3600 * 1000));
}

TEST_CASE("waits are doubled, bounded, and end") {
  const RetryPolicy policy{.max_retries = 9, .first_delay = milliseconds(500), .max_delay = milliseconds(30000)};
  const grpc::Status unavailable(grpc::StatusCode::UNAVAILABLE, "draining");
  CHECK(policy.DelayBefore(0, unavailable, 0) == milliseconds(500));
  CHECK(policy.DelayBefore(1, unavailable, 0) == milliseconds(1000));
  CHECK(policy.DelayBefore(8, unavailable, 0) == milliseconds(30000));
  CHECK(policy.DelayBefore(9, unavailable, 0) == std::nullopt);
  CHECK(policy.DelayBefore(0, unavailable, 0.5) == milliseconds(625));
}

TEST_CASE("the server's wish replaces the doubling, within the bound") {
  const RetryPolicy policy;
  CHECK(policy.DelayBefore(3, Overloaded(1, 0), 0) == milliseconds(1000));
  CHECK(policy.DelayBefore(0, Overloaded(3600, 0), 0) == policy.max_delay);
}

TEST_CASE("only what may pass is tried again") {
  const RetryPolicy policy;
  CHECK(policy.DelayBefore(0, grpc::Status::OK, 0) == std::nullopt);
  CHECK(policy.DelayBefore(0, grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, "x"), 0) == std::nullopt);
  CHECK(policy.DelayBefore(0, grpc::Status(grpc::StatusCode::DEADLINE_EXCEEDED, "x"), 0) == std::nullopt);
}

}  // namespace
}  // namespace quire
