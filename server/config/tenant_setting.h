#pragma once

#include "server/config/server_settings.h"

namespace quire {

// The setting "tenants": {"NAME": {"weight", "max_running_requests", "max_kv_blocks", "requests_per_minute",
// "tokens_per_minute"}, ...}, every member optional, "*" for all tenants that are not named. Errors name the tenant and
// the member.
ServerSetting TenantsSetting();

}  // namespace quire
