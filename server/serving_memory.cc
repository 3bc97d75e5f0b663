#include "server/serving_memory.h"

#include <algorithm>

#include "engine/text/text_memory.h"

namespace quire {
namespace {

constexpr int64_t kBytesPerBodyByte = 3;                // text, parsed, and in the request's own form
constexpr int64_t kBytesPerHttpConnection = 128 << 10;  // its thread's stack and buffers
constexpr int64_t kBytesPerGrpcConnection = 20 << 10;   // of what gRPC does not count itself
constexpr int64_t kBytesPerTlsSession = 64 << 10;       // its keys, and a record each way

int64_t GrpcConnectionBytes(const ServerConfig& config) {
  return config.grpc_max_connections * (kBytesPerGrpcConnection + (config.tls.enabled() ? kBytesPerTlsSession : 0));
}

int64_t HttpBytes(const ServerConfig& config) {
  if (config.http_listen.empty()) return 0;
  const int64_t bytes_per_connection = kBytesPerHttpConnection + (config.tls.enabled() ? kBytesPerTlsSession : 0);
  return kBytesPerBodyByte * kHttpBodyBytes + config.http_max_connections * bytes_per_connection;
}

}  // namespace

int64_t MaxQueuedTextBytes(const ServerConfig& config) {
  constexpr int64_t kTextBytesPerToken = 8;  // twice what English text has
  return config.engine.max_queued_tokens * kTextBytesPerToken;
}

SurroundingMemory MemoryAroundEngine(const Checkpoint& checkpoint, const ServerConfig& config) {
  // No prompt is longer, whatever length will fit.
  const int64_t max_tokens =
      config.engine.max_model_len.value_or(checkpoint.GetInt("llama.context_length").value_or(0));
  const int64_t max_prompt_bytes =
      std::min<int64_t>(max_tokens * LongestTokenBytes(checkpoint), kMaxReceiveMessageBytes);
  SurroundingMemory around;
  around.text_layer_bytes =
      EstimateTextLayerBytes(checkpoint) + EncodingBytesFor(max_prompt_bytes, config.text_threads - 1);
  around.queued_text_bytes = MaxQueuedTextBytes(config);
  around.rpc_bytes = kRpcBufferBytes + GrpcConnectionBytes(config) + kStreamBufferBytes + HttpBytes(config);
  around.num_text_threads = config.text_threads;
  return around;
}

}  // namespace quire
