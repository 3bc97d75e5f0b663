#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/model/compute_type.h"
#include "engine/model/decoder.h"
#include "engine/model/model_config.h"
#include "engine/model/workspace.h"
#include "engine/tensor/dtype.h"

namespace quire {

struct DecoderOptions {
  DecoderLimits limits;
  DType weight_type = DType::kBF16;
  std::string_view compute_type = "auto";  // as ChooseComputeType takes it
  int64_t num_blocks = 0;                  // of the KV cache
};

struct LoadedDecoder {
  std::unique_ptr<Decoder> decoder;
  ComputeTypeChoice compute;
};

// Measures kernels, loads the weights and takes all memory of a decoder. Errors as ChooseComputeType's and
// LoadWeights'; ResourceExhausted if the memory is not there. `progress` as LoadWeights'.
absl::StatusOr<LoadedDecoder> LoadDecoder(const Checkpoint& checkpoint, const ModelConfig& config,
                                          const DecoderOptions& options,
                                          const std::function<void(int64_t, int64_t)>& progress);

}  // namespace quire
