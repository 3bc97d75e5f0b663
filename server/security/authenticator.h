#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "server/security/api_keys.h"
#include "server/security/key_file.h"
#include "server/security/reloadable_file.h"

namespace quire {

// The value of a call's metadata key, or of an HTTP request's header; several with ", " between; or nothing.
using MetadataLookup = std::function<std::optional<std::string>(std::string_view key)>;

// What a call says of itself, and where it comes from.
struct CallOrigin {
  MetadataLookup metadata;
  bool is_loopback = false;
};

// Tells whose call it is. Thread-safe.
class Authenticator {
 public:
  virtual ~Authenticator() = default;

  // UNAUTHENTICATED, PERMISSION_DENIED or INVALID_ARGUMENT for a call that may not go on.
  virtual absl::StatusOr<Caller> Authenticate(const CallOrigin& origin) = 0;
};

// Without keys callers are believed: the tenant is what `x-tenant-id` says, else "default". Those on this machine are
// admins.
std::unique_ptr<Authenticator> MakeKeylessAuthenticator();

// A call needs one of the keys in `file`, as `authorization: Bearer KEY`; changes of the file are in force within a
// second. If it says `x-tenant-id`, it must be the key's. `file` must outlive the authenticator.
std::unique_ptr<Authenticator> MakeKeyAuthenticator(ReloadableFile<KeyFile>* file);

// PERMISSION_DENIED unless the caller is an admin.
absl::Status RequireAdmin(const Caller& caller);

}  // namespace quire
