#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "engine/runtime/engine_config.h"
#include "server/security/rate_limiter.h"

namespace quire {

// What tenants may use, by name: of the engine, and in a minute.
struct TenantTable {
  TenantLimitsByName limits;
  RateLimitsByTenant rates;
};

// What errors say of a wrong value and of an unknown member's name. Of a file of keys they may be keys.
enum class WrongValues { kShown, kHidden };

// An object {"NAME": {"weight", "max_running_requests", "max_kv_blocks", "requests_per_minute", "tokens_per_minute"},
// ...}, every member optional, "*" for all tenants that are not named. INVALID_ARGUMENT names the tenant and the
// member, as `field`.NAME.MEMBER.
absl::StatusOr<TenantTable> ParseTenantTable(const std::string& field, const nlohmann::json& json,
                                             WrongValues wrong_values);

// What ParseTenantTable reads back as `table`.
nlohmann::json ToJson(const TenantTable& table);

}  // namespace quire
