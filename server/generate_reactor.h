#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <string>

#include "absl/status/statusor.h"
#include "server/generation_call.h"

namespace quire {

// The two gRPC adapters of a GenerationCall. Each starts the call, or finishes at once with the error that `input`
// holds; cancellation, by the caller or by its deadline, ends the call.

// Generate: collects the events and answers once.
grpc::ServerUnaryReactor* StartUnaryGeneration(const GenerationPipeline& pipeline, const std::string& model_name,
                                               absl::StatusOr<GenerationInput> input, grpc::ByteBuffer* response);

// GenerateStream: writes the events as they come, one write in flight. While it is, chunks join into one, so that a
// slow reader costs no more memory than its own answer.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartStreamGeneration(const GenerationPipeline& pipeline,
                                                                  const std::string& model_name,
                                                                  absl::StatusOr<GenerationInput> input);

}  // namespace quire
