#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "server/config/server_config.h"

namespace quire {

// What a start with `config` would take and hold, without loading weights: for people, or as a JSON object. A budget or
// a pool set by hand is answered for wherever it will run; the answer says whether it would start here. Errors as
// OpenCheckpoint's and PlanEngine's.
absl::StatusOr<std::string> DryRun(const ServerConfig& config, bool as_json);

}  // namespace quire
