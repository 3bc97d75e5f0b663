#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <string>

#include "absl/status/statusor.h"
#include "server/generation_call.h"
#include "server/stream_memory.h"

namespace quire {

// The two gRPC adapters of a GenerationCall. Each starts the call, or finishes at once with the error that `input`
// holds; cancellation, by the caller or by its deadline, ends the call.

// Generate: collects the events and answers once.
grpc::ServerUnaryReactor* StartUnaryGeneration(const GenerationPipeline& pipeline, const std::string& model_name,
                                               absl::StatusOr<GenerationInput> input, grpc::ByteBuffer* response);

// GenerateStream: writes the events as they come, one write in flight. While it is, chunks join in an outbox. A reader
// that lets more wait there than `memory` allows is ended with RESOURCE_EXHAUSTED.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartStreamGeneration(const GenerationPipeline& pipeline,
                                                                  const std::string& model_name, StreamMemory* memory,
                                                                  absl::StatusOr<GenerationInput> input);

}  // namespace quire
