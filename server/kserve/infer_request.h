#pragma once

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "inference/open_inference.pb.h"
#include "server/kserve/infer_parameters.h"
#include "server/kserve/text_tensor.h"

namespace quire {

// The only version that there is of the model.
inline constexpr std::string_view kModelVersion = "1";

// OK for an empty version and for kModelVersion; NOT_FOUND for another.
absl::Status CheckModelVersion(std::string_view asked);

// What a ModelInferRequest asks for: the answer to one text.
struct InferRequest {
  std::string text;
  TextTensorForm form;
  InferParameters parameters;
};

// Pure. INVALID_ARGUMENT names what is wrong of tensors and parameters; model, version and id are not looked at.
absl::StatusOr<InferRequest> ParseInferRequest(const inference::ModelInferRequest& request);

}  // namespace quire
