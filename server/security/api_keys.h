#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace quire {

// Whose call it is.
struct Caller {
  std::string tenant;
  bool is_admin = false;  // may use quire.v1.Admin, and see what other tenants do
};

// The keys that callers may come with. Only their SHA-256 is kept: keys are random and long, so that nothing slower is
// needed against guessing.
class ApiKeys {
 public:
  // An array [{"sha256": 64 hexadecimal digits, "tenant": NAME, "admin": true, "comment": TEXT}, ...], the last two
  // optional. INVALID_ARGUMENT names what is wrong, as `field`[INDEX].MEMBER.
  static absl::StatusOr<ApiKeys> Parse(const std::string& field, const nlohmann::json& json);

  // Whose key it is, or nothing. Takes the same time whichever key it is, and whether it is one.
  std::optional<Caller> Find(std::string_view key) const;

  size_t size() const { return entries_.size(); }

  using Hash = std::array<uint8_t, 32>;
  static Hash HashOf(std::string_view key);

 private:
  struct Entry {
    Hash sha256;
    Caller caller;
  };

  std::vector<Entry> entries_;
};

// A new random key of 256 bits, and the entry for it in a file of keys.
struct NewApiKey {
  std::string key;
  std::string entry;  // JSON
};
absl::StatusOr<NewApiKey> MakeApiKey(const std::string& tenant, bool is_admin);

// INVALID_ARGUMENT for `field` unless a tenant may have this name: 1 to 64 printable ASCII characters.
absl::Status CheckTenantName(std::string_view field, const std::string& name);

}  // namespace quire
