#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace quire {

// Other sites whose pages may ask this server.
class AllowedOrigins {
 public:
  // None.
  AllowedOrigins() = default;
  // `text` is SCHEME://HOST[:PORT] with commas between, "*" for all, or empty. INVALID_ARGUMENT, for `field`.
  static absl::StatusOr<AllowedOrigins> Parse(std::string_view field, std::string_view text);

  bool Contains(std::string_view origin) const;

 private:
  std::vector<std::string> origins_;
};

}  // namespace quire
