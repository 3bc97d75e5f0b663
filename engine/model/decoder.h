#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "engine/model/forward_batch.h"
#include "engine/model/kernel_choice.h"
#include "engine/model/kv_cache_storage.h"
#include "engine/model/model_config.h"
#include "engine/model/step_profile.h"
#include "engine/model/weights.h"
#include "engine/model/workspace.h"
#include "engine/ops/parallel.h"
#include "engine/tensor/tensor_view.h"

namespace quire {

// A decoder-only transformer with its KV cache. One forward pass takes a ragged batch of prefill chunks and decodes in
// one parallel region, and allocates nothing. Not thread-safe.
class Decoder {
 public:
  // `forms` are those of the weights' plan. The team's scratch holds Workspace::ScratchBytesFor.
  Decoder(const ModelConfig& config, ModelWeights weights, const DecoderLimits& limits, const InputFormsBySite& forms,
          int64_t num_blocks, std::unique_ptr<ThreadTeam> team);

  // As ChooseKernels, once, before the first step.
  absl::StatusOr<KernelChoice> ChooseKernels(std::string_view compute_type, bool deterministic, KernelTimes& times);

  const ModelConfig& config() const { return config_; }
  const ModelWeights& weights() const { return weights_; }
  const KvCacheStorage& cache() const { return cache_; }
  ThreadTeam& team() { return *team_; }

  // Is told where every pass from now on spends its time, and must outlive the last one; null: nobody is.
  void SetProfile(StepProfile* profile) { profile_ = profile; }

  // Logits of the rows in batch.logits_indices, [num_logits_rows, vocab_size]; valid until the next call. The batch
  // must be within the limits, its token ids within the vocabulary, its blocks within the cache.
  MatrixView<float> Forward(const ForwardBatch& batch);

 private:
  void CheckBatch(const ForwardBatch& batch) const;
  void ForwardOnWorker(Worker& worker, const ForwardBatch& batch);

  ModelConfig config_;
  ModelWeights weights_;
  DecoderLimits limits_;
  KvCacheStorage cache_;
  Workspace workspace_;
  std::unique_ptr<ThreadTeam> team_;
  StepProfile* profile_ = nullptr;
};

}  // namespace quire
