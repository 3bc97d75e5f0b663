#pragma once

#include <google/protobuf/map.h>

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "engine/base/generation_types.h"
#include "inference/open_inference.pb.h"

namespace quire {

using ParameterMap = google::protobuf::Map<std::string, inference::InferParameter>;

// What the parameters of a ModelInferRequest say.
struct InferParameters {
  SamplingParams sampling;
  bool include_special_tokens = false;
  std::optional<double> timeout_seconds;
  int32_t priority = 0;
  std::string cache_salt;
};

// Pure. INVALID_ARGUMENT names the parameter: one of the wrong type, one with a value that is not supported, or one
// that is not known; those that can't change the answer are ignored. Ranges that the engine checks are left to it.
absl::StatusOr<InferParameters> ParseInferParameters(const ParameterMap& parameters);

// The same of a tensor's own parameters, which stand at `path`: none of them is needed.
absl::Status CheckTensorParameters(const std::string& path, const ParameterMap& parameters);

}  // namespace quire
