#include "server/security/allowed_origins.h"

#include <algorithm>

#include "absl/strings/str_split.h"
#include "engine/base/status.h"

namespace quire {
namespace {

constexpr const char* kAny = "*";

bool IsOrigin(std::string_view text) {
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!text.starts_with(scheme)) continue;
    const std::string_view host = text.substr(scheme.size());
    return !host.empty() && host.find_first_of("/?#@ ") == std::string_view::npos;
  }
  return false;
}

}  // namespace

absl::StatusOr<AllowedOrigins> AllowedOrigins::Parse(std::string_view field, std::string_view text) {
  AllowedOrigins result;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(text.data(), text.size()), ',', absl::SkipEmpty())) {
    std::string origin(part);
    if (origin != kAny && !IsOrigin(origin)) {
      return InvalidArgument(field, StrCat("\"", origin, "\""),
                             "SCHEME://HOST[:PORT] with http or https and nothing behind, with commas between, or *");
    }
    result.origins_.push_back(std::move(origin));
  }
  return result;
}

bool AllowedOrigins::Contains(std::string_view origin) const {
  return std::ranges::any_of(origins_,
                             [&](const std::string& allowed) { return allowed == kAny || allowed == origin; });
}

}  // namespace quire
