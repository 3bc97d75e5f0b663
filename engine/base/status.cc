#include "engine/base/status.h"

#include "absl/strings/cord.h"
#include "absl/strings/numbers.h"

namespace quire {
namespace {

constexpr std::string_view kFieldPayload = "quire/field";
constexpr std::string_view kRetryDelayPayload = "quire/retry_delay_ms";

absl::Status WithField(absl::Status status, std::string_view field) {
  status.SetPayload(kFieldPayload, absl::Cord(field));
  return status;
}

absl::Status WithRetryDelay(absl::Status status, std::chrono::milliseconds delay) {
  status.SetPayload(kRetryDelayPayload, absl::Cord(absl::StrCat(delay.count())));
  return status;
}

}  // namespace

absl::Status InvalidArgument(std::string_view field, std::string_view value, std::string_view accepted) {
  return WithField(absl::InvalidArgumentError(absl::StrCat(field, ": got ", value, ", expected ", accepted)), field);
}

absl::Status NeverFits(std::string_view field, std::string_view message) {
  return WithField(absl::InvalidArgumentError(absl::StrCat(field, ": ", message)), field);
}

absl::Status Overloaded(std::string_view message, std::chrono::milliseconds delay) {
  return WithRetryDelay(absl::ResourceExhaustedError(message), delay);
}

absl::Status Unavailable(std::string_view message, std::chrono::milliseconds delay) {
  return WithRetryDelay(absl::UnavailableError(message), delay);
}

std::optional<std::string> FieldOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kFieldPayload);
  if (!payload) return std::nullopt;
  return std::string(*payload);
}

std::optional<std::chrono::milliseconds> RetryDelayOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryDelayPayload);
  int64_t milliseconds = 0;
  if (!payload || !absl::SimpleAtoi(std::string(*payload), &milliseconds)) return std::nullopt;
  return std::chrono::milliseconds(milliseconds);
}

}  // namespace quire
