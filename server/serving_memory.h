#pragma once

#include <cstdint>

#include "engine/runtime/engine_plan.h"
#include "server/config/server_config.h"

namespace quire {

// The bounds that the server keeps to, and counts in the memory sum.

// Largest message that is received, request and metadata apart; larger ones get RESOURCE_EXHAUSTED from gRPC.
inline constexpr int kMaxReceiveMessageBytes = 16 * 1024 * 1024;

// Of gRPC's buffers: reads and writes of all connections, and its own records of calls. Above it gRPC slows readers
// down, then ends calls.
inline constexpr int64_t kRpcBufferBytes = int64_t{24} << 20;

// Of answers that wait for their readers, all together; beside it each may keep a little, which counts as the request's
// own state.
inline constexpr int64_t kStreamBufferBytes = int64_t{8} << 20;

// Of the bodies of HTTP requests that are being read or parsed, together; a body takes three times its size while it
// is parsed.
inline constexpr int64_t kHttpBodyBytes = int64_t{8} << 20;

// Of prompts that wait to be encoded or are being encoded, together.
int64_t MaxQueuedTextBytes(const ServerConfig& config);

// What the server takes around the engine; it follows from file and flags alone.
SurroundingMemory MemoryAroundEngine(const Checkpoint& checkpoint, const ServerConfig& config);

}  // namespace quire
