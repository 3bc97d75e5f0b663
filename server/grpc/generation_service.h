#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <string>

#include "absl/status/statusor.h"
#include "quire/v1/generation.grpc.pb.h"
#include "server/generation/generation_call.h"
#include "server/generation/request_ids.h"
#include "server/messages/stream_memory.h"
#include "server/security/authenticator.h"

namespace quire {

// quire.v1.Generation. Every method takes raw bytes, so that a message that can't be parsed is answered by name.
class GenerationService final
    : public v1::Generation::WithRawCallbackMethod_Generate<
          v1::Generation::WithRawCallbackMethod_GenerateStream<v1::Generation::WithRawCallbackMethod_Tokenize<
              v1::Generation::WithRawCallbackMethod_Detokenize<v1::Generation::WithRawCallbackMethod_ListModels<
                  v1::Generation::WithRawCallbackMethod_GetModelInfo<v1::Generation::Service>>>>>> {
 public:
  using Context = grpc::CallbackServerContext;
  using Buffer = grpc::ByteBuffer;

  // The pointers and the pipeline's parts must outlive the service.
  GenerationService(const GenerationPipeline& pipeline, v1::ModelInfo model, Authenticator* authenticator,
                    StreamMemory* stream_memory, RequestIds* request_ids);

  grpc::ServerUnaryReactor* Generate(Context* context, const Buffer* request, Buffer* response) override;
  grpc::ServerWriteReactor<Buffer>* GenerateStream(Context* context, const Buffer* request) override;
  grpc::ServerUnaryReactor* Tokenize(Context* context, const Buffer* request, Buffer* response) override;
  grpc::ServerUnaryReactor* Detokenize(Context* context, const Buffer* request, Buffer* response) override;
  grpc::ServerUnaryReactor* ListModels(Context* context, const Buffer* request, Buffer* response) override;
  grpc::ServerUnaryReactor* GetModelInfo(Context* context, const Buffer* request, Buffer* response) override;

 private:
  absl::StatusOr<GenerationInput> ToInput(Context* context, const Buffer& request);

  absl::Status DoTokenize(const v1::TokenizeRequest& request, v1::TokenizeResponse* response) const;
  absl::Status DoDetokenize(const v1::DetokenizeRequest& request, v1::DetokenizeResponse* response) const;

  const GenerationPipeline pipeline_;
  const v1::ModelInfo model_;
  Authenticator* const authenticator_;
  StreamMemory* const stream_memory_;
  RequestIds* const request_ids_;
};

}  // namespace quire
