#pragma once

#include <array>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/model/kernel_times.h"
#include "engine/model/weights.h"
#include "engine/model/workspace.h"
#include "engine/ops/linear_kernels.h"
#include "engine/ops/parallel.h"

namespace quire {

struct KernelChoice {
  std::string compute_type;  // all that are in use, "int8, bf16"
  std::string reason;        // why, with what was measured
};

// Chooses the kernels that read the weights, for each shape of linear layer and bucket of rows, and the forms of the
// workspace's activations with them.
//   "auto": measures on the team's threads, with the model's own layers, and takes the fastest of those that are at
//     least as accurate as the storage: for f32 weights f32; for bf16 weights f32 or bf16; for quantized weights int8
//     or bf16. `deterministic` takes one for all numbers of rows, so that a row's result does not depend on its batch.
//   "f32", "bf16", "int8": this one wherever the storage allows it. InvalidArgument if it allows it nowhere, or if the
//     processor has no kernels for it.
// Then those of prompts' attention, measured on `cache`, one layer's. What `times` knows is not measured again.
absl::StatusOr<KernelChoice> ChooseKernels(std::string_view requested, bool deterministic, ModelWeights& weights,
                                           const KvLayerView& cache, Workspace& workspace, ThreadTeam& team,
                                           KernelTimes& times);

}  // namespace quire
