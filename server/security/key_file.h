#pragma once

#include <memory>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/clock.h"
#include "server/security/api_keys.h"
#include "server/security/reloadable_file.h"
#include "server/security/tenant_table.h"

namespace quire {

// What the file of keys says: who may call, and what tenants may use, if it says that.
struct KeyFile {
  ApiKeys keys;
  std::optional<TenantTable> tenants;

  // A JSON object with comments: {"keys": [...], "tenants": {...}}, the latter optional, as ApiKeys::Parse and
  // ParseTenantTable take them. INVALID_ARGUMENT names what is wrong, with `path` in front.
  static absl::StatusOr<KeyFile> Parse(const std::string& text, const std::string& path);
  // Of the file at `path`.
  static absl::StatusOr<KeyFile> Load(const std::string& path);
};

// The file at `path`, read again when it changes. With `tenants_are_set`, by the setting of that name, a file that has
// them too can't be used: one place says what tenants may use. `clock` must outlive it.
absl::StatusOr<std::unique_ptr<ReloadableFile<KeyFile>>> OpenKeyFile(const std::string& path, bool tenants_are_set,
                                                                     const Clock* clock);

}  // namespace quire
