#include "server/security/authenticator.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "engine/base/status.h"

namespace quire {
namespace {

constexpr std::string_view kTenantKey = "x-tenant-id";
constexpr std::string_view kAuthorizationKey = "authorization";
constexpr std::string_view kScheme = "bearer ";

class KeylessAuthenticator : public Authenticator {
 public:
  absl::StatusOr<Caller> Authenticate(const CallOrigin& origin) override {
    Caller caller = {.tenant = origin.metadata(kTenantKey).value_or("default"), .is_admin = origin.is_loopback};
    QUIRE_RETURN_IF_ERROR(CheckTenantName(kTenantKey, caller.tenant));
    return caller;
  }
};

// The key in "Bearer KEY", whose scheme may be written in any case: RFC 9110, section 11.1.
std::optional<std::string_view> KeyIn(std::string_view authorization) {
  const bool has_scheme = authorization.size() > kScheme.size() &&
                          std::ranges::equal(authorization.substr(0, kScheme.size()), kScheme,
                                             [](unsigned char a, char b) { return std::tolower(a) == b; });
  if (!has_scheme) return std::nullopt;
  authorization.remove_prefix(kScheme.size());
  authorization.remove_prefix(std::min(authorization.find_first_not_of(' '), authorization.size()));
  return authorization;
}

class KeyAuthenticator : public Authenticator {
 public:
  explicit KeyAuthenticator(ReloadableFile<KeyFile>* file) : file_(file) {}

  absl::StatusOr<Caller> Authenticate(const CallOrigin& origin) override {
    const std::optional<std::string> authorization = origin.metadata(kAuthorizationKey);
    const std::optional<std::string_view> key = KeyIn(authorization ? std::string_view(*authorization) : "");
    if (!key) return absl::UnauthenticatedError("authorization: no API key; expected \"Bearer KEY\"");
    std::optional<Caller> caller = file_->Get()->keys.Find(*key);
    if (!caller) return absl::UnauthenticatedError("authorization: the API key is not known to this server");
    const std::optional<std::string> tenant = origin.metadata(kTenantKey);
    if (tenant && *tenant != caller->tenant) {
      return absl::PermissionDeniedError(StrCat(kTenantKey, ": not the tenant of the API key"));
    }
    return *std::move(caller);
  }

 private:
  ReloadableFile<KeyFile>* const file_;
};

}  // namespace

std::unique_ptr<Authenticator> MakeKeylessAuthenticator() { return std::make_unique<KeylessAuthenticator>(); }

std::unique_ptr<Authenticator> MakeKeyAuthenticator(ReloadableFile<KeyFile>* file) {
  return std::make_unique<KeyAuthenticator>(file);
}

absl::Status RequireAdmin(const Caller& caller) {
  if (caller.is_admin) return absl::OkStatus();
  return absl::PermissionDeniedError(
      "this is for admins: callers with an admin's API key, or on the server's own machine if it has no keys");
}

}  // namespace quire
