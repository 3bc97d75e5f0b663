#pragma once

#include "absl/status/status.h"
#include "engine/runtime/engine_loop.h"

namespace quire {

// Answers a short request of the server's own, so that what is done once, at the first step, is done before anybody
// waits for it. The request's error, if it fails.
absl::Status WarmUp(EngineLoop* engine);

}  // namespace quire
