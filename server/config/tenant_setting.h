#pragma once

#include "server/config/server_settings.h"

namespace quire {

// The setting "tenants": an object as ParseTenantTable takes it. Errors name the tenant and the member.
ServerSetting TenantsSetting();

}  // namespace quire
