#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace quire {

// The value of a call's metadata key, or nothing.
using MetadataLookup = std::function<std::optional<std::string>(std::string_view key)>;

// Tells whose call this is. Thread-safe.
class Authenticator {
 public:
  virtual ~Authenticator() = default;

  // The tenant, or UNAUTHENTICATED, PERMISSION_DENIED, INVALID_ARGUMENT.
  virtual absl::StatusOr<std::string> Authenticate(const MetadataLookup& metadata) const = 0;
};

// Without keys callers are believed: the tenant is what `x-tenant-id` says, else "default".
class KeylessAuthenticator : public Authenticator {
 public:
  absl::StatusOr<std::string> Authenticate(const MetadataLookup& metadata) const override;
};

}  // namespace quire
