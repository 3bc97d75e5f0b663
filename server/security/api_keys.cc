#include "server/security/api_keys.h"

#include <openssl/crypto.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/rand.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <utility>

#include "absl/strings/escaping.h"
#include "engine/base/check.h"
#include "engine/base/status.h"
#include "server/security/hidden_json.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxTenantBytes = 64;
constexpr size_t kKeyBytes = 32;
constexpr const char* kKeyPrefix = "quire_";  // so that leaked keys are found by tools that look for them

std::string Hex(std::span<const uint8_t> bytes) {
  return absl::BytesToHexString(std::string(bytes.begin(), bytes.end()));
}

// Anything of the file may be a key, put there by mistake: messages tell types and lengths alone.
absl::Status CheckMembers(const std::string& field, const Json& entry) {
  if (!entry.is_object()) return InvalidArgument(field, HiddenJson(entry), "an object");
  for (const auto& [name, value] : entry.items()) {
    const bool is_text = name == "sha256" || name == "tenant" || name == "comment";
    if (!is_text && name != "admin") {
      return InvalidArgument(field, "a member of another name", "sha256, tenant, admin and comment");
    }
    if (is_text && !value.is_string()) return InvalidArgument(StrCat(field, ".", name), HiddenJson(value), "a string");
    if (!is_text && !value.is_boolean()) {
      return InvalidArgument(StrCat(field, ".", name), HiddenJson(value), "true or false");
    }
  }
  return absl::OkStatus();
}

absl::Status ReadHash(const std::string& field, const Json& entry, std::span<uint8_t> hash) {
  const std::string hex = entry.value("sha256", "");
  size_t num_bytes = 0;
  const bool is_read = OPENSSL_hexstr2buf_ex(hash.data(), hash.size(), &num_bytes, hex.c_str(), '\0') == 1;
  if (is_read && num_bytes == hash.size()) return absl::OkStatus();
  ERR_clear_error();
  return InvalidArgument(StrCat(field, ".sha256"), StrCat(hex.size(), " bytes"), "64 hexadecimal digits");
}

}  // namespace

absl::Status CheckTenantName(std::string_view field, const std::string& name) {
  const char* const accepted = "1 to 64 printable ASCII characters";
  if (name.empty() || name.size() > kMaxTenantBytes) {
    return InvalidArgument(field, StrCat(name.size(), " bytes"), accepted);
  }
  const bool printable = std::ranges::all_of(name, [](char c) { return c >= ' ' && c <= '~'; });
  return printable ? absl::OkStatus() : InvalidArgument(field, "a character that is not printable ASCII", accepted);
}

absl::StatusOr<ApiKeys> ApiKeys::Parse(const std::string& field, const Json& json) {
  if (!json.is_array()) return InvalidArgument(field, HiddenJson(json), "an array");
  ApiKeys keys;
  std::set<Hash> hashes;
  for (const Json& json_entry : json) {
    const std::string entry_field = StrCat(field, "[", keys.size(), "]");
    QUIRE_RETURN_IF_ERROR(CheckMembers(entry_field, json_entry));
    Entry entry = {.sha256 = {},
                   .caller = {.tenant = json_entry.value("tenant", ""), .is_admin = json_entry.value("admin", false)}};
    QUIRE_RETURN_IF_ERROR(ReadHash(entry_field, json_entry, entry.sha256));
    QUIRE_RETURN_IF_ERROR(CheckTenantName(StrCat(entry_field, ".tenant"), entry.caller.tenant));
    if (!hashes.insert(entry.sha256).second) {
      return InvalidArgument(StrCat(entry_field, ".sha256"), "that of an entry before it", "a key only once");
    }
    keys.entries_.push_back(std::move(entry));
  }
  return keys;
}

std::optional<Caller> ApiKeys::Find(std::string_view key) const {
  const Hash hash = HashOf(key);
  const Entry* found = nullptr;
  for (const Entry& entry : entries_) {
    if (CRYPTO_memcmp(entry.sha256.data(), hash.data(), hash.size()) == 0) found = &entry;
  }
  return found != nullptr ? std::optional(found->caller) : std::nullopt;
}

ApiKeys::Hash ApiKeys::HashOf(std::string_view key) {
  Hash hash;
  QUIRE_CHECK(EVP_Digest(key.data(), key.size(), hash.data(), nullptr, EVP_sha256(), nullptr) == 1);
  return hash;
}

absl::StatusOr<NewApiKey> MakeApiKey(const std::string& tenant, bool is_admin) {
  QUIRE_RETURN_IF_ERROR(CheckTenantName("tenant", tenant));
  std::array<uint8_t, kKeyBytes> secret;
  if (RAND_bytes(secret.data(), secret.size()) != 1) return absl::InternalError("the system has no random bytes");
  const std::string key = StrCat(kKeyPrefix, Hex(secret));
  nlohmann::ordered_json entry = {{"sha256", Hex(ApiKeys::HashOf(key))}, {"tenant", tenant}};
  if (is_admin) entry["admin"] = true;
  return NewApiKey{.key = key, .entry = entry.dump()};
}

}  // namespace quire
