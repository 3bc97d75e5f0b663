#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/strings.h"

namespace quire {

// INVALID_ARGUMENT for one field: "field: got value, expected accepted". The field's name can be read
// back with FieldOf, for a BadRequest detail.
absl::Status InvalidArgument(std::string_view field, std::string_view value, std::string_view accepted);

template <typename Value>
  requires std::is_arithmetic_v<Value>
absl::Status InvalidArgument(std::string_view field, Value value, std::string_view accepted) {
  return InvalidArgument(field, std::string_view(StrCat(value)), accepted);
}

// INVALID_ARGUMENT for a request that can never run here, whatever else ends: the message holds the
// needed and the available sizes. `field` as in InvalidArgument.
absl::Status NeverFits(std::string_view field, std::string_view message);

// RESOURCE_EXHAUSTED or UNAVAILABLE that may succeed if tried again after `delay`; RetryDelayOf reads it back.
absl::Status Overloaded(std::string_view message, std::chrono::milliseconds delay);
absl::Status Unavailable(std::string_view message, std::chrono::milliseconds delay);

// The field that an INVALID_ARGUMENT names, or nothing.
std::optional<std::string> FieldOf(const absl::Status& status);

// The delay after which a retry makes sense, or nothing.
std::optional<std::chrono::milliseconds> RetryDelayOf(const absl::Status& status);

}  // namespace quire

// Returns from the enclosing function if `expression`, an absl::Status, is not OK.
#define QUIRE_RETURN_IF_ERROR(expression)                               \
  do {                                                                  \
    if (absl::Status quire_status = (expression); !quire_status.ok()) { \
      return quire_status;                                              \
    }                                                                   \
  } while (false)

#define QUIRE_CONCAT_INNER_(a, b) a##b
#define QUIRE_CONCAT_(a, b) QUIRE_CONCAT_INNER_(a, b)

// QUIRE_ASSIGN_OR_RETURN(auto value, StatusOrExpression()) declares or assigns, or returns the error.
#define QUIRE_ASSIGN_OR_RETURN(target, expression) \
  QUIRE_ASSIGN_OR_RETURN_IMPL_(QUIRE_CONCAT_(quire_status_or_, __LINE__), target, expression)
#define QUIRE_ASSIGN_OR_RETURN_IMPL_(result, target, expression) \
  auto result = (expression);                                    \
  if (!result.ok()) {                                            \
    return result.status();                                      \
  }                                                              \
  target = *std::move(result)
