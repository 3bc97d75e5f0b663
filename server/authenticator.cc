#include "server/authenticator.h"

#include <algorithm>

#include "engine/base/status.h"

namespace quire {
namespace {

constexpr std::string_view kTenantKey = "x-tenant-id";
constexpr size_t kMaxTenantBytes = 64;

bool IsPrintable(char c) { return c >= ' ' && c <= '~'; }

}  // namespace

absl::StatusOr<std::string> KeylessAuthenticator::Authenticate(const MetadataLookup& metadata) const {
  std::optional<std::string> tenant = metadata(kTenantKey);
  if (!tenant) return "default";
  if (tenant->empty() || tenant->size() > kMaxTenantBytes) {
    return InvalidArgument(kTenantKey, StrCat(tenant->size(), " bytes"), "1 to 64 printable ASCII characters");
  }
  if (!std::all_of(tenant->begin(), tenant->end(), IsPrintable)) {
    return InvalidArgument(kTenantKey, "a character that is not printable ASCII", "1 to 64 printable ASCII characters");
  }
  return *std::move(tenant);
}

}  // namespace quire
