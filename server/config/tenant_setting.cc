#include "server/config/tenant_setting.h"

#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "engine/base/status.h"
#include "server/config/setting_kinds.h"
#include "server/security/api_keys.h"
#include "server/shown_json.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr char kName[] = "tenants";
constexpr int64_t kMaxCount = int64_t{1} << 40;
constexpr double kMinWeight = 0.001;
constexpr double kMaxWeight = 1000;

// What the engine and the rate limiter know of a tenant.
struct TenantEntry {
  TenantLimits limits;
  RateLimits rates;
};

absl::Status SetMember(const std::string& path, const std::string& key, const Json& value, TenantEntry* entry) {
  if (key == "weight") {
    // Written so that NaN fails it.
    if (!value.is_number() || !(value.get<double>() >= kMinWeight && value.get<double>() <= kMaxWeight)) {
      return InvalidArgument(path, ShownJson(value), StrCat("a number in [", kMinWeight, ", ", kMaxWeight, "]"));
    }
    entry->limits.weight = value.get<double>();
  } else if (key == "max_running_requests") {
    QUIRE_ASSIGN_OR_RETURN(entry->limits.max_running_requests, IntegerIn(path, value, 1, kMaxCount, ""));
  } else if (key == "max_kv_blocks") {
    QUIRE_ASSIGN_OR_RETURN(entry->limits.max_kv_blocks, IntegerIn(path, value, 1, kMaxCount, ""));
  } else if (key == "requests_per_minute") {
    QUIRE_ASSIGN_OR_RETURN(entry->rates.requests_per_minute, IntegerIn(path, value, 1, kMaxCount, ""));
  } else if (key == "tokens_per_minute") {
    QUIRE_ASSIGN_OR_RETURN(entry->rates.tokens_per_minute, IntegerIn(path, value, 1, kMaxCount, ""));
  } else {
    return InvalidArgument(path, "an unknown key",
                           "weight, max_running_requests, max_kv_blocks, requests_per_minute or tokens_per_minute");
  }
  return absl::OkStatus();
}

absl::StatusOr<TenantEntry> ParseEntry(const std::string& name, const Json& json) {
  const std::string path = StrCat(kName, ".", name);
  if (!json.is_object()) return InvalidArgument(path, ShownJson(json), "an object");
  TenantEntry entry;
  for (const auto& [key, value] : json.items()) {
    QUIRE_RETURN_IF_ERROR(SetMember(StrCat(path, ".", key), key, value, &entry));
  }
  return entry;
}

absl::Status SetTenants(const Json& json, ServerConfig* config) {
  if (!json.is_object()) return InvalidArgument(kName, ShownJson(json), "a JSON object by tenant name");
  TenantLimitsByName limits;
  RateLimitsByTenant rates;
  for (const auto& [name, value] : json.items()) {
    QUIRE_RETURN_IF_ERROR(CheckTenantName(kName, name));
    QUIRE_ASSIGN_OR_RETURN(const TenantEntry entry, ParseEntry(name, value));
    limits[name] = entry.limits;
    rates[name] = entry.rates;
  }
  config->engine.tenants = std::move(limits);
  config->rate_limits = std::move(rates);
  return absl::OkStatus();
}

Json GetTenants(const ServerConfig& config) {
  Json json = Json::object();
  for (const auto& [name, limits] : config.engine.tenants) {
    Json& tenant = json[name] = {{"weight", limits.weight}};
    if (limits.max_running_requests) tenant["max_running_requests"] = *limits.max_running_requests;
    if (limits.max_kv_blocks) tenant["max_kv_blocks"] = *limits.max_kv_blocks;
    const auto rates = config.rate_limits.find(name);
    if (rates == config.rate_limits.end()) continue;
    if (rates->second.requests_per_minute) tenant["requests_per_minute"] = *rates->second.requests_per_minute;
    if (rates->second.tokens_per_minute) tenant["tokens_per_minute"] = *rates->second.tokens_per_minute;
  }
  return json;
}

}  // namespace

ServerSetting TenantsSetting() {
  return {
      kName, "JSON",
      "Shares and limits by tenant, \"*\" for all others: {\"NAME\": {\"weight\": 2, \"max_running_requests\": 8, "
      "\"max_kv_blocks\": 500, \"requests_per_minute\": 60, \"tokens_per_minute\": 100000}}, each optional; weight in "
      "[0.001, 1000].",
      SetTenants, GetTenants};
}

}  // namespace quire
