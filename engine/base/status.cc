#include "engine/base/status.h"

#include <charconv>

#include "absl/strings/cord.h"

namespace quire {
namespace {

constexpr char kFieldPayload[] = "quire/field";
constexpr char kRetryDelayPayload[] = "quire/retry_delay_ms";

absl::Status WithField(absl::Status status, std::string_view field) {
  status.SetPayload(kFieldPayload, absl::Cord(std::string(field)));
  return status;
}

absl::Status WithRetryDelay(absl::Status status, std::chrono::milliseconds delay) {
  status.SetPayload(kRetryDelayPayload, absl::Cord(StrCat(delay.count())));
  return status;
}

}  // namespace

absl::Status InvalidArgument(std::string_view field, std::string_view value, std::string_view accepted) {
  return WithField(absl::InvalidArgumentError(StrCat(field, ": got ", value, ", expected ", accepted)), field);
}

absl::Status NeverFits(std::string_view field, std::string_view message) {
  return WithField(absl::InvalidArgumentError(StrCat(field, ": ", message)), field);
}

absl::Status Overloaded(std::string_view message, std::chrono::milliseconds delay) {
  return WithRetryDelay(absl::ResourceExhaustedError(std::string(message)), delay);
}

absl::Status Unavailable(std::string_view message, std::chrono::milliseconds delay) {
  return WithRetryDelay(absl::UnavailableError(std::string(message)), delay);
}

std::optional<std::string> FieldOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kFieldPayload);
  if (!payload) return std::nullopt;
  return std::string(*payload);
}

std::optional<std::chrono::milliseconds> RetryDelayOf(const absl::Status& status) {
  const auto payload = status.GetPayload(kRetryDelayPayload);
  if (!payload) return std::nullopt;
  const std::string text(*payload);
  int64_t milliseconds = 0;
  std::from_chars(text.data(), text.data() + text.size(), milliseconds);
  return std::chrono::milliseconds(milliseconds);
}

}  // namespace quire
