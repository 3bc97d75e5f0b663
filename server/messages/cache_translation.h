#pragma once

#include "engine/runtime/engine_builder.h"
#include "engine/runtime/engine_config.h"
#include "engine/runtime/engine_stats.h"
#include "engine/runtime/memory_budget.h"
#include "quire/v1/cache.pb.h"

namespace quire {

// From the engine's counters and plans to the Cache service's messages. Pure. `memory` and `info` are what the engine
// was started with.

v1::CacheStats ToProto(const EngineStats& stats, const MemoryPlan& memory, const EngineInfo& info);

v1::CacheConfig ToProto(const EngineConfig& config, const MemoryPlan& memory, const EngineInfo& info);

}  // namespace quire
