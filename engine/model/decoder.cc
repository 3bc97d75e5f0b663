#include "engine/model/decoder.h"

#include <utility>

#include "engine/base/check.h"
#include "engine/model/decoder_layer.h"
#include "engine/ops/kv_write.h"
#include "engine/ops/rms_norm.h"

namespace quire {

Decoder::Decoder(const ModelConfig& config, ModelWeights weights, const DecoderLimits& limits,
                 const InputFormsBySite& forms, int64_t num_blocks, std::unique_ptr<ThreadTeam> team)
    : config_(config),
      weights_(std::move(weights)),
      limits_(limits),
      cache_(config.num_layers, limits.kv_layout, num_blocks),
      workspace_(config, limits, forms),
      team_(std::move(team)) {
  QUIRE_CHECK_GE(team_->scratch_bytes(), Workspace::ScratchBytesFor(config, limits));
  QUIRE_CHECK_LE(team_->num_threads(), limits.num_threads);
  team_->Run([this](Worker& worker) {
    cache_.Touch(worker);
    workspace_.Touch(worker);
  });
}

absl::StatusOr<KernelChoice> Decoder::ChooseKernels(std::string_view compute_type, bool deterministic,
                                                    KernelTimes& times) {
  return quire::ChooseKernels(compute_type, deterministic, weights_, cache_.layer(0), workspace_, *team_, times);
}

MatrixView<float> Decoder::Forward(const ForwardBatch& batch) {
  CheckBatch(batch);
  workspace_.SetRows(batch.num_tokens(), batch.num_logits_rows());
  workspace_.attention.SetBatch({.query_start_loc = batch.query_start_loc,
                                 .seq_lens = batch.seq_lens,
                                 .block_tables = batch.block_tables.data(),
                                 .max_blocks_per_seq = batch.max_blocks_per_seq});
  team_->Run([&](Worker& worker) { ForwardOnWorker(worker, batch); });
  return workspace_.logits(batch.num_logits_rows());
}

void Decoder::CheckBatch(const ForwardBatch& batch) const {
  QUIRE_CHECK_LE(batch.num_tokens(), limits_.max_tokens);
  QUIRE_CHECK_LE(batch.num_seqs(), limits_.max_num_seqs);
  QUIRE_CHECK_LE(batch.num_logits_rows(), limits_.max_logits_rows);
  QUIRE_CHECK_EQ(batch.query_start_loc.back(), batch.num_tokens());
}

void Decoder::ForwardOnWorker(Worker& worker, const ForwardBatch& batch) {
  const int64_t num_tokens = batch.num_tokens();
  StepProfile* const profile = worker.index() == 0 ? profile_ : nullptr;
  if (profile != nullptr) profile->Begin();
  worker.For(config_.num_layers, [&](int64_t begin, int64_t end) {
    for (int64_t layer = begin; layer < end; ++layer) {
      for (const KvBlockCopy& copy : batch.block_copies) CopyKvBlock(cache_.layer(layer), copy.from, copy.to);
    }
  });
  workspace_.rope.SetPositions(worker, batch.positions);
  const MatrixView<float> hidden = workspace_.hidden(num_tokens);
  worker.For(num_tokens, [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      weights_.embedding_table().UnpackRow(batch.token_ids[token], hidden.row(token));
    }
  });
  EndPart(profile, StepPart::kEmbedding);
  for (int64_t layer = 0; layer < config_.num_layers; ++layer) {
    ForwardLayer(worker, config_, weights_.layers[layer], cache_.layer(layer), batch.slot_mapping, workspace_, profile);
  }
  if (batch.num_logits_rows() > 0) {
    RmsNormRows(worker, hidden, batch.logits_indices, weights_.final_norm.data(), config_.rms_norm_epsilon,
                workspace_.head_input);
    weights_.lm_head.Forward(worker, workspace_.head_input, workspace_.logits(batch.num_logits_rows()));
  }
  EndPart(profile, StepPart::kHead);
  Brgemm::ReleaseThread();
}

}  // namespace quire
