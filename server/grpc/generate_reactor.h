#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>
#include <grpcpp/support/status.h>

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "quire/v1/generation.pb.h"
#include "server/generation/generation_call.h"
#include "server/messages/stream_memory.h"

namespace quire {

// The two gRPC adapters of a GenerationCall. Each starts the call, or finishes at once with the error that `input`
// holds; cancellation, by the caller or by its deadline, ends the call.

// An answer that ended well: all its chunks joined, and its end.
struct WholeAnswer {
  std::string request_id;
  v1::StreamChunk output;
  GenerationResult result;
};

// How a service says a whole answer, or why there is none.
struct UnaryFormat {
  std::function<grpc::ByteBuffer(WholeAnswer answer)> response;
  std::function<grpc::Status(const absl::Status& status)> status;
};

// Collects the events and answers once. The error that `input` holds is told as it is, those of the call itself by
// `format`.
grpc::ServerUnaryReactor* StartUnaryGeneration(const GenerationPipeline& pipeline, UnaryFormat format,
                                               absl::StatusOr<GenerationInput> input, grpc::ByteBuffer* response);

// GenerateStream: writes the events as they come, one write in flight. While it is, chunks join in an outbox. A reader
// that lets more wait there than `memory` allows is ended with RESOURCE_EXHAUSTED.
grpc::ServerWriteReactor<grpc::ByteBuffer>* StartStreamGeneration(const GenerationPipeline& pipeline,
                                                                  const std::string& model_name, StreamMemory* memory,
                                                                  absl::StatusOr<GenerationInput> input);

}  // namespace quire
