#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/model/decoder.h"
#include "engine/model/kernel_choice.h"
#include "engine/model/model_config.h"
#include "engine/model/weight_plan.h"
#include "engine/model/workspace.h"

namespace quire {

struct DecoderOptions {
  DecoderLimits limits;
  std::string_view compute_type = "auto";  // as ChooseKernels takes it
  bool deterministic = false;
  std::string kernel_times_file;  // as KernelTimes takes it
  int64_t num_blocks = 0;         // of the KV cache
};

struct LoadedDecoder {
  std::unique_ptr<Decoder> decoder;
  KernelChoice kernels;
};

// Loads the weights, takes all memory of a decoder and chooses its kernels. Errors as LoadWeights' and ChooseKernels';
// ResourceExhausted if the memory is not there. `progress` as LoadWeights'.
absl::StatusOr<LoadedDecoder> LoadDecoder(const Checkpoint& checkpoint, const ModelConfig& config,
                                          const WeightPlan& weight_plan, const DecoderOptions& options,
                                          const std::function<void(int64_t, int64_t)>& progress);

}  // namespace quire
