#include "engine/base/status.h"

#include <catch2/catch_test_macros.hpp>
#include <chrono>

namespace quire {
namespace {

using std::chrono::milliseconds;

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return InvalidArgument("value", value, "an even number");
  return value / 2;
}

absl::StatusOr<int> Quarter(int value) {
  QUIRE_ASSIGN_OR_RETURN(const int half, Half(value));
  QUIRE_ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

absl::Status CheckEven(int value) {
  QUIRE_RETURN_IF_ERROR(Half(value).status());
  return absl::OkStatus();
}

TEST_CASE("InvalidArgument names the field, the value and what is accepted") {
  const absl::Status status = InvalidArgument("top_p", "1.5", "a number in (0, 1]");
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(status.message() == "top_p: got 1.5, expected a number in (0, 1]");
  CHECK(FieldOf(status) == "top_p");
  CHECK_FALSE(RetryDelayOf(status).has_value());
}

TEST_CASE("InvalidArgument takes numbers") {
  CHECK(InvalidArgument("top_k", -1, "0 or more").message() == "top_k: got -1, expected 0 or more");
  CHECK(InvalidArgument("top_p", 0.5, "1").message() == "top_p: got 0.5, expected 1");
}

TEST_CASE("NeverFits keeps its field and message") {
  const absl::Status status = NeverFits("prompt", "needs 9 blocks, the pool has 4");
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(status.message() == "prompt: needs 9 blocks, the pool has 4");
  CHECK(FieldOf(status) == "prompt");
}

TEST_CASE("a status that may be retried carries the delay") {
  const absl::Status overloaded = Overloaded("the queue is full", milliseconds(1500));
  CHECK(overloaded.code() == absl::StatusCode::kResourceExhausted);
  CHECK(overloaded.message() == "the queue is full");
  CHECK(RetryDelayOf(overloaded) == milliseconds(1500));
  CHECK_FALSE(FieldOf(overloaded).has_value());

  const absl::Status unavailable = Unavailable("draining", milliseconds(0));
  CHECK(unavailable.code() == absl::StatusCode::kUnavailable);
  CHECK(RetryDelayOf(unavailable) == milliseconds(0));
}

TEST_CASE("a plain status has neither field nor delay") {
  CHECK_FALSE(FieldOf(absl::InternalError("x")).has_value());
  CHECK_FALSE(RetryDelayOf(absl::OkStatus()).has_value());
}

TEST_CASE("the macros hand a value or the error on") {
  CHECK(Quarter(12).value() == 3);
  CHECK(Quarter(3).status().message() == "value: got 3, expected an even number");
  CHECK(Quarter(6).status().message() == "value: got 3, expected an even number");
  CHECK(FieldOf(Quarter(6).status()) == "value");
  CHECK(CheckEven(2).ok());
  CHECK_FALSE(CheckEven(1).ok());
}

}  // namespace
}  // namespace quire
