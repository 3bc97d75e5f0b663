#include "engine/model/decoder_layer.h"

#include "engine/ops/kv_write.h"
#include "engine/ops/rms_norm.h"

namespace quire {
namespace {

void RotateAndWriteKv(Worker& worker, const ModelConfig& config, const KvLayerView& cache,
                      std::span<const SlotId> slot_mapping, const Rope& rope, MatrixView<float> qkv) {
  worker.For(qkv.rows, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      float* queries = qkv.row_data(token);           // [num_heads, head_dim]
      float* keys = queries + config.q_size();        // [num_kv_heads, head_dim]
      const float* values = keys + config.kv_size();  // [num_kv_heads, head_dim]
      for (float* head = queries; head < values; head += config.head_dim) rope.Rotate(token, head);
      WriteKv(cache, slot_mapping[token], keys, values);
    }
  });
}

}  // namespace

void ForwardLayer(Worker& worker, const ModelConfig& config, const LayerWeights& weights, const KvLayerView& cache,
                  std::span<const SlotId> slot_mapping, const Workspace& workspace, StepProfile* profile) {
  const auto num_tokens = static_cast<int64_t>(slot_mapping.size());
  const MatrixView<float> hidden = workspace.hidden(num_tokens);
  const MatrixView<float> qkv = workspace.qkv(num_tokens);

  RmsNorm(worker, hidden, weights.attention_norm.data(), config.rms_norm_epsilon, workspace.normed);
  EndPart(profile, StepPart::kNorm);
  weights.qkv_proj.Forward(worker, workspace.normed, qkv);
  EndPart(profile, StepPart::kQkv);
  RotateAndWriteKv(worker, config, cache, slot_mapping, workspace.rope, qkv);
  EndPart(profile, StepPart::kRopeKv);
  workspace.attention.Forward(worker, cache, qkv, workspace.attended);
  EndPart(profile, StepPart::kAttention);
  weights.o_proj.Forward(worker, workspace.attended, hidden);
  EndPart(profile, StepPart::kOut);

  RmsNorm(worker, hidden, weights.ffn_norm.data(), config.rms_norm_epsilon, workspace.normed);
  EndPart(profile, StepPart::kNorm);
  weights.gate_up_proj.ForwardSiluMul(worker, workspace.normed, num_tokens, workspace.gated);
  EndPart(profile, StepPart::kGateUp);
  weights.down_proj.Forward(worker, workspace.gated, hidden);
  EndPart(profile, StepPart::kDown);
}

}  // namespace quire
