#include "server/tenant_setting.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "engine/base/status.h"
#include "server/setting_kinds.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr char kName[] = "tenants";
constexpr int64_t kMaxCount = int64_t{1} << 40;
constexpr double kMinWeight = 0.001;
constexpr double kMaxWeight = 1000;
constexpr size_t kMaxNameBytes = 64;

// As callers may name themselves.
absl::Status CheckName(const std::string& name) {
  const bool printable = std::all_of(name.begin(), name.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (printable && !name.empty() && name.size() <= kMaxNameBytes) return absl::OkStatus();
  return InvalidArgument(kName, Json(name).dump(-1, ' ', true, Json::error_handler_t::replace),
                         "names of 1 to 64 printable ASCII characters, or *");
}

absl::Status SetMember(const std::string& path, const std::string& key, const Json& value, TenantLimits* limits) {
  if (key == "weight") {
    // Written so that NaN fails it.
    if (!value.is_number() || !(value.get<double>() >= kMinWeight && value.get<double>() <= kMaxWeight)) {
      return InvalidArgument(path, value.dump(), StrCat("a number in [", kMinWeight, ", ", kMaxWeight, "]"));
    }
    limits->weight = value.get<double>();
  } else if (key == "max_running_requests") {
    QUIRE_ASSIGN_OR_RETURN(limits->max_running_requests, IntegerIn(path, value, 1, kMaxCount, ""));
  } else if (key == "max_kv_blocks") {
    QUIRE_ASSIGN_OR_RETURN(limits->max_kv_blocks, IntegerIn(path, value, 1, kMaxCount, ""));
  } else {
    return InvalidArgument(path, "an unknown key", "weight, max_running_requests or max_kv_blocks");
  }
  return absl::OkStatus();
}

absl::StatusOr<TenantLimits> ParseLimits(const std::string& name, const Json& json) {
  const std::string path = StrCat(kName, ".", name);
  if (!json.is_object()) return InvalidArgument(path, json.dump(), "an object");
  TenantLimits limits;
  for (const auto& [key, value] : json.items()) {
    QUIRE_RETURN_IF_ERROR(SetMember(StrCat(path, ".", key), key, value, &limits));
  }
  return limits;
}

absl::Status SetTenants(const Json& json, ServerConfig* config) {
  if (!json.is_object()) return InvalidArgument(kName, json.dump(), "a JSON object by tenant name");
  TenantLimitsByName tenants;
  for (const auto& [name, value] : json.items()) {
    QUIRE_RETURN_IF_ERROR(CheckName(name));
    QUIRE_ASSIGN_OR_RETURN(tenants[name], ParseLimits(name, value));
  }
  config->engine.tenants = std::move(tenants);
  return absl::OkStatus();
}

Json GetTenants(const ServerConfig& config) {
  Json json = Json::object();
  for (const auto& [name, limits] : config.engine.tenants) {
    Json& tenant = json[name] = {{"weight", limits.weight}};
    if (limits.max_running_requests) tenant["max_running_requests"] = *limits.max_running_requests;
    if (limits.max_kv_blocks) tenant["max_kv_blocks"] = *limits.max_kv_blocks;
  }
  return json;
}

}  // namespace

ServerSetting TenantsSetting() {
  return {kName, "JSON",
          "Shares and limits by tenant, \"*\" for all others: {\"NAME\": {\"weight\": 2, \"max_running_requests\": 8, "
          "\"max_kv_blocks\": 500}}, each optional; weight in [0.001, 1000].",
          SetTenants, GetTenants};
}

}  // namespace quire
