#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/model/model_config.h"
#include "engine/model/weight_plan.h"
#include "engine/ops/packed_linear.h"
#include "engine/ops/parallel.h"
#include "engine/tensor/arena.h"

namespace quire {

struct LayerWeights {
  std::vector<float> attention_norm;  // [hidden_size]
  PackedLinear qkv_proj;              // [q_size + 2 kv_size, hidden_size]: q, k, v
  PackedLinear o_proj;                // [hidden_size, q_size]
  std::vector<float> ffn_norm;        // [hidden_size]
  PackedLinear gate_up_proj;          // [2 intermediate_size, hidden_size]: gate, up; kSiluMul
  PackedLinear down_proj;             // [hidden_size, intermediate_size]
};

struct ModelWeights {
  Arena arena;                                          // holds the panels of all layers
  std::vector<std::shared_ptr<LinearKernels>> kernels;  // of all layers, one for each shape
  std::vector<LayerWeights> layers;                     // [num_layers]
  std::vector<float> final_norm;                        // [hidden_size]
  PackedLinear lm_head;                                 // [vocab_size, hidden_size]
  std::optional<PackedLinear> embedding;                // [vocab_size, hidden_size]; none if lm_head is it

  const PackedLinear& embedding_table() const { return embedding ? *embedding : lm_head; }
};

// Each worker's scratch that LoadWeights needs.
int64_t LoadScratchBytesFor(const ModelConfig& config);

// Reads every tensor once, a panel's rows at a time, and packs it, both on the team's threads. Calls
// progress(done_bytes, total_bytes of the file's tensors) now and then on the calling thread. Errors of reading as
// ReadTensor's.
absl::StatusOr<ModelWeights> LoadWeights(const Checkpoint& checkpoint, const ModelConfig& config,
                                         const WeightPlan& plan, ThreadTeam& team,
                                         const std::function<void(int64_t, int64_t)>& progress);

}  // namespace quire
