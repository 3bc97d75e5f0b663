#pragma once

#include <string>

#include "inference/open_inference.pb.h"
#include "server/grpc/generate_reactor.h"
#include "server/kserve/text_tensor.h"

namespace quire {

// From the server's types to the Open Inference Protocol's messages. Pure.

// The text in the form in which the prompt came; the rest as parameters.
inference::ModelInferResponse ToInferResponse(const WholeAnswer& answer, const TextTensorForm& form,
                                              const std::string& model_name);

inference::ModelMetadataResponse TextModelMetadata(const std::string& model_name);
inference::ServerMetadataResponse QuireMetadata();

}  // namespace quire
