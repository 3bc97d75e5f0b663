#include "bench/step_cost.h"

#include <numeric>

#include "engine/model/weights.h"

namespace quire {
namespace {

void AddLinear(StepPart part, const PackedLinear& linear, DecoderSizes* sizes) {
  const auto index = static_cast<size_t>(part);
  sizes->weight_elements[index] += static_cast<double>(linear.shape().out_features * linear.shape().in_features);
  sizes->weight_bytes[index] += static_cast<double>(linear.size_bytes());
}

}  // namespace

double DecoderSizes::weight_bytes_per_step() const {
  return std::accumulate(weight_bytes.begin(), weight_bytes.end(), 0.0);
}

DecoderSizes SizesOf(const Decoder& decoder) {
  DecoderSizes sizes;
  for (const LayerWeights& layer : decoder.weights().layers) {
    AddLinear(StepPart::kQkv, layer.qkv_proj, &sizes);
    AddLinear(StepPart::kOut, layer.o_proj, &sizes);
    AddLinear(StepPart::kGateUp, layer.gate_up_proj, &sizes);
    AddLinear(StepPart::kDown, layer.down_proj, &sizes);
  }
  AddLinear(StepPart::kHead, decoder.weights().lm_head, &sizes);
  const ModelConfig& config = decoder.config();
  sizes.ops_per_score = 2.0 * 2.0 * static_cast<double>(config.num_layers * config.q_size());
  const KvLayout& layout = decoder.cache().layout();
  sizes.kv_bytes_per_token = static_cast<double>(KvCacheStorage::BytesPerBlock(config.num_layers, layout)) /
                             static_cast<double>(layout.block_size);
  return sizes;
}

PartCosts CostOf(const DecoderSizes& sizes, const StepWork& work) {
  PartCosts costs;
  for (size_t part = 0; part < kNumStepParts; ++part) {
    const bool is_head = part == static_cast<size_t>(StepPart::kHead);
    const auto rows = static_cast<double>(is_head ? work.num_logits_rows : work.num_tokens);
    const auto steps = static_cast<double>(is_head ? work.num_head_steps : work.num_steps);
    costs[part] = {.ops = 2 * rows * sizes.weight_elements[part], .bytes = steps * sizes.weight_bytes[part]};
  }
  costs[static_cast<size_t>(StepPart::kAttention)] = {
      .ops = sizes.ops_per_score * static_cast<double>(work.num_scores),
      .bytes = sizes.kv_bytes_per_token * static_cast<double>(work.num_cached_tokens)};
  return costs;
}

Cost Sum(const PartCosts& costs) {
  Cost sum;
  for (const Cost& cost : costs) sum += cost;
  return sum;
}

}  // namespace quire
