#include "server/config/tenant_setting.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "engine/base/status.h"
#include "server/security/tenant_table.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr char kName[] = "tenants";

absl::Status SetTenants(const Json& json, ServerConfig* config) {
  QUIRE_ASSIGN_OR_RETURN(TenantTable table, ParseTenantTable(kName, json, WrongValues::kShown));
  config->engine.tenants = std::move(table.limits);
  config->rate_limits = std::move(table.rates);
  return absl::OkStatus();
}

Json GetTenants(const ServerConfig& config) {
  return ToJson(TenantTable{.limits = config.engine.tenants, .rates = config.rate_limits});
}

}  // namespace

ServerSetting TenantsSetting() {
  return {
      kName, "JSON",
      "Shares and limits by tenant, \"*\" for all others: {\"NAME\": {\"weight\": 2, \"max_running_requests\": 8, "
      "\"max_kv_blocks\": 500, \"requests_per_minute\": 60, \"tokens_per_minute\": 100000}}, each optional; weight in "
      "[0.001, 1000]. In the file of api_keys instead, they may change while the server runs.",
      SetTenants, GetTenants};
}

}  // namespace quire
