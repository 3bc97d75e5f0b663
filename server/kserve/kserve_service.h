#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include <string>

#include "absl/status/statusor.h"
#include "inference/open_inference.grpc.pb.h"
#include "server/generation/generation_call.h"
#include "server/generation/request_ids.h"
#include "server/grpc/generate_reactor.h"
#include "server/kserve/text_tensor.h"
#include "server/life/serving_state.h"
#include "server/security/authenticator.h"

namespace quire {

// inference.GRPCInferenceService, the Open Inference Protocol. Every method takes raw bytes, like GenerationService's.
class KserveService final : public inference::GRPCInferenceService::WithRawCallbackMethod_ServerLive<
                                inference::GRPCInferenceService::WithRawCallbackMethod_ServerReady<
                                    inference::GRPCInferenceService::WithRawCallbackMethod_ModelReady<
                                        inference::GRPCInferenceService::WithRawCallbackMethod_ServerMetadata<
                                            inference::GRPCInferenceService::WithRawCallbackMethod_ModelMetadata<
                                                inference::GRPCInferenceService::WithRawCallbackMethod_ModelInfer<
                                                    inference::GRPCInferenceService::Service>>>>>> {
 public:
  using Context = grpc::CallbackServerContext;
  using Buffer = grpc::ByteBuffer;

  // The pointers and the pipeline's parts must outlive the service.
  KserveService(const GenerationPipeline& pipeline, std::string model_name, Authenticator* authenticator,
                const ServingState* serving, RequestIds* request_ids);

  grpc::ServerUnaryReactor* ServerLive(Context* context, const Buffer* request, Buffer* response) override;
  grpc::ServerUnaryReactor* ServerReady(Context* context, const Buffer* request, Buffer* response) override;
  grpc::ServerUnaryReactor* ModelReady(Context* context, const Buffer* request, Buffer* response) override;
  grpc::ServerUnaryReactor* ServerMetadata(Context* context, const Buffer* request, Buffer* response) override;
  grpc::ServerUnaryReactor* ModelMetadata(Context* context, const Buffer* request, Buffer* response) override;
  grpc::ServerUnaryReactor* ModelInfer(Context* context, const Buffer* request, Buffer* response) override;

 private:
  absl::Status CheckModel(const std::string& name, const std::string& version) const;
  // Sets `form`, too.
  absl::StatusOr<GenerationInput> ToInput(Context* context, const Buffer& request, TextTensorForm* form);
  UnaryFormat FormatOf(TextTensorForm form) const;

  const GenerationPipeline pipeline_;
  const std::string model_name_;
  Authenticator* const authenticator_;
  const ServingState* const serving_;
  RequestIds* const request_ids_;
};

}  // namespace quire
