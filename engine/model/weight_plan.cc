#include "engine/model/weight_plan.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "absl/strings/str_join.h"
#include "engine/base/math.h"
#include "engine/base/status.h"
#include "engine/ops/packed_linear.h"
#include "engine/tensor/arena.h"

namespace quire {
namespace {

LinearSource QkvSource(const ModelConfig& config, int64_t layer) {
  return {{LayerTensorName(layer, "attn_q"), LayerTensorName(layer, "attn_k"), LayerTensorName(layer, "attn_v")},
          {config.q_size(), config.kv_size(), config.kv_size()},
          config.hidden_size};
}
LinearSource OutputSource(const ModelConfig& config, int64_t layer) {
  return {{LayerTensorName(layer, "attn_output")}, {config.hidden_size}, config.q_size()};
}
LinearSource GateUpSource(const ModelConfig& config, int64_t layer) {
  return {{LayerTensorName(layer, "ffn_gate"), LayerTensorName(layer, "ffn_up")},
          {config.intermediate_size, config.intermediate_size},
          config.hidden_size};
}
LinearSource DownSource(const ModelConfig& config, int64_t layer) {
  return {{LayerTensorName(layer, "ffn_down")}, {config.hidden_size}, config.intermediate_size};
}
LinearSource EmbeddingSource(const ModelConfig& config) {
  return {{"token_embd.weight"}, {config.vocab_size}, config.hidden_size};
}
LinearSource HeadSource(const ModelConfig& config) {
  return config.tied_embeddings ? EmbeddingSource(config)
                                : LinearSource{{"output.weight"}, {config.vocab_size}, config.hidden_size};
}

WeightType TypeOf(StorageType type) {
  switch (type) {
    case StorageType::kF32: return WeightType::kF32;
    case StorageType::kF16: return WeightType::kBF16;
    case StorageType::kBF16: return WeightType::kBF16;
    case StorageType::kQ8_0: return WeightType::kQ8_0;
    case StorageType::kQ4_0: return WeightType::kQ4_0;
    case StorageType::kQ4_1: return WeightType::kQ4_1;
  }
  return WeightType::kF32;
}

// One type that keeps the weights of both, as far as there is one.
WeightType Join(WeightType a, WeightType b) {
  if (a == b) return a;
  return HasNibbles(a) && HasNibbles(b) ? WeightType::kQ4_1 : WeightType::kBF16;
}

// Plans linear layers and adds up what they need.
class Planner {
 public:
  Planner(const Checkpoint& checkpoint, std::optional<WeightType> requested)
      : checkpoint_(checkpoint), requested_(requested) {}

  // The layer's input is written in parts of `input_part` columns. Keeps the first error.
  PlannedLinear Plan(LinearSource source, int64_t input_part, LinearOutput output) {
    const int64_t out_features = std::accumulate(source.out_features.begin(), source.out_features.end(), int64_t{0});
    std::optional<WeightType> type = requested_;
    for (size_t i = 0; i < source.names.size(); ++i) {
      const CheckpointTensor* tensor = Find(source.names[i], {source.out_features[i], source.in_features});
      if (tensor == nullptr) return {};
      if (!requested_) type = type ? Join(*type, TypeOf(tensor->type)) : TypeOf(tensor->type);
    }
    if (IsQuantized(*type) && input_part % kGroupSize != 0) type = WeightType::kBF16;
    const LinearShape shape = {out_features, source.in_features, *type, output};
    panel_bytes_ += AlignUp(PackedLinear::BytesFor(shape), Arena::kAlignment);
    return {std::move(source), shape};
  }

  void CheckNorm(const std::string& name, int64_t hidden_size) {
    if (Find(name, {hidden_size}) != nullptr) norm_bytes_ += hidden_size * static_cast<int64_t>(sizeof(float));
  }

  const absl::Status& status() const { return status_; }
  int64_t panel_bytes() const { return panel_bytes_; }
  int64_t norm_bytes() const { return norm_bytes_; }

 private:
  const CheckpointTensor* Find(const std::string& name, const std::vector<int64_t>& shape) {
    const CheckpointTensor* tensor = checkpoint_.FindTensor(name);
    if (tensor != nullptr && tensor->shape == shape) return tensor;
    const std::string found = tensor == nullptr ? "none" : StrCat("[", absl::StrJoin(tensor->shape, ", "), "]");
    status_.Update(absl::InvalidArgumentError(StrCat(checkpoint_.path(), ": expected a tensor ", name, " [",
                                                     absl::StrJoin(shape, ", "), "], found ", found)));
    return nullptr;
  }

  const Checkpoint& checkpoint_;
  const std::optional<WeightType> requested_;
  absl::Status status_;
  int64_t panel_bytes_ = 0;
  int64_t norm_bytes_ = 0;
};

}  // namespace

std::string LayerTensorName(int64_t layer, std::string_view name) {
  return StrCat("blk.", layer, ".", name, ".weight");
}

std::string WeightPlan::DescribeTypes() const {
  std::map<std::string_view, int64_t> bytes;
  const auto add = [&](const PlannedLinear& linear) {
    bytes[ToString(linear.shape.weight_type)] += PackedLinear::BytesFor(linear.shape);
  };
  for (const PlannedLayer& layer : layers) {
    for (const PlannedLinear* linear : {&layer.qkv_proj, &layer.o_proj, &layer.gate_up_proj, &layer.down_proj}) {
      add(*linear);
    }
  }
  add(lm_head);
  if (embedding) add(*embedding);
  std::vector<std::pair<int64_t, std::string_view>> by_bytes;
  for (const auto& [type, type_bytes] : bytes) by_bytes.emplace_back(type_bytes, type);
  std::ranges::sort(by_bytes, std::greater<>());
  return absl::StrJoin(by_bytes, ", ", [](std::string* out, const auto& entry) { out->append(entry.second); });
}

InputFormsBySite WeightPlan::forms() const {
  InputFormsBySite forms;
  const auto add = [](const PlannedLinear& linear, InputForms& of_input) {
    of_input = of_input | InputForms::For(linear.shape.weight_type);
  };
  for (const PlannedLayer& layer : layers) {
    add(layer.qkv_proj, forms.normed);
    add(layer.o_proj, forms.attended);
    add(layer.gate_up_proj, forms.normed);
    add(layer.down_proj, forms.gated);
  }
  add(lm_head, forms.head_input);
  return forms;
}

absl::StatusOr<WeightPlan> PlanWeights(const Checkpoint& checkpoint, const ModelConfig& config,
                                       std::optional<WeightType> requested) {
  Planner planner(checkpoint, requested);
  WeightPlan plan;
  const int64_t hidden = config.hidden_size;
  const int64_t kv_head_queries = config.q_size() / config.num_kv_heads;  // attention writes these at once
  for (int64_t layer = 0; layer < config.num_layers && planner.status().ok(); ++layer) {
    planner.CheckNorm(LayerTensorName(layer, "attn_norm"), config.hidden_size);
    planner.CheckNorm(LayerTensorName(layer, "ffn_norm"), config.hidden_size);
    plan.layers.push_back(
        {.qkv_proj = planner.Plan(QkvSource(config, layer), hidden, LinearOutput::kOverwrite),
         .o_proj = planner.Plan(OutputSource(config, layer), kv_head_queries, LinearOutput::kAccumulate),
         .gate_up_proj = planner.Plan(GateUpSource(config, layer), hidden, LinearOutput::kSiluMul),
         .down_proj = planner.Plan(DownSource(config, layer), config.intermediate_size, LinearOutput::kAccumulate)});
  }
  planner.CheckNorm("output_norm.weight", config.hidden_size);
  plan.lm_head = planner.Plan(HeadSource(config), hidden, LinearOutput::kOverwrite);
  if (!config.tied_embeddings) plan.embedding = planner.Plan(EmbeddingSource(config), hidden, LinearOutput::kOverwrite);
  QUIRE_RETURN_IF_ERROR(planner.status());
  plan.panel_bytes = planner.panel_bytes();
  plan.norm_bytes = planner.norm_bytes();
  return plan;
}

}  // namespace quire
