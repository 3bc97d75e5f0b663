#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/model/model_config.h"
#include "engine/ops/linear_kernels.h"
#include "engine/ops/weight_type.h"

namespace quire {

// A linear layer's place in the checkpoint: the rows of several tensors, one after the other.
struct LinearSource {
  std::vector<std::string> names;
  std::vector<int64_t> out_features;  // of each
  int64_t in_features;
};

struct PlannedLinear {
  LinearSource source;
  LinearShape shape;
};

struct PlannedLayer {
  PlannedLinear qkv_proj;
  PlannedLinear o_proj;
  PlannedLinear gate_up_proj;
  PlannedLinear down_proj;
};

// All forms that kernels may read of each input of linear layers.
struct InputFormsBySite {
  InputForms normed;
  InputForms attended;
  InputForms gated;
  InputForms head_input;
};

// How a checkpoint's weights will be stored; it follows from file and flags alone and fixes their memory.
struct WeightPlan {
  std::vector<PlannedLayer> layers;        // [num_layers]
  PlannedLinear lm_head;                   // [vocab_size, hidden_size]
  std::optional<PlannedLinear> embedding;  // [vocab_size, hidden_size]; none if lm_head is it
  int64_t panel_bytes = 0;                 // of all linear layers
  int64_t norm_bytes = 0;

  InputFormsBySite forms() const;
  int64_t total_bytes() const { return panel_bytes + norm_bytes; }
  // The types in use, the one with most bytes first: "q4_1, q8_0".
  std::string DescribeTypes() const;
};

std::string LayerTensorName(int64_t layer, std::string_view name);

// `requested`: all linear layers in one type (f32, bf16 or int8); none: each as the file has it, as far as that can be
// kept. F16 becomes bf16; so do layers fused of tensors of several types, but for Q4_0 with Q4_1, which is Q4_1, and
// layers whose inputs do not come in whole groups.
// A tensor that is missing or has another shape is named (InvalidArgument).
absl::StatusOr<WeightPlan> PlanWeights(const Checkpoint& checkpoint, const ModelConfig& config,
                                       std::optional<WeightType> requested);

}  // namespace quire
