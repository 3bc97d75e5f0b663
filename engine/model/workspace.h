#pragma once

#include <cstdint>

#include "engine/model/model_config.h"
#include "engine/model/weight_plan.h"
#include "engine/ops/activation.h"
#include "engine/ops/paged_attention.h"
#include "engine/ops/rope.h"
#include "engine/tensor/buffer.h"
#include "engine/tensor/tensor_view.h"

namespace quire {

// The largest step that a decoder is made for.
struct DecoderLimits {
  int64_t max_tokens = 0;       // of one step
  int64_t max_num_seqs = 0;     // of one step
  int64_t max_logits_rows = 0;  // of one step
  int64_t max_seq_len = 0;      // tokens
  int64_t num_threads = 0;
  KvLayout kv_layout;
};

KvLayout KvLayoutFor(const ModelConfig& config, int64_t block_size, DType dtype);

// All scratch of a step, allocated once for the largest one.
class Workspace {
 public:
  // `forms` are all that the weights' kernels may read.
  Workspace(const ModelConfig& config, const DecoderLimits& limits, const InputFormsBySite& forms);
  // What it holds, each worker's scratch included.
  static int64_t BytesFor(const ModelConfig& config, const DecoderLimits& limits, const InputFormsBySite& forms);
  // Each worker's scratch that loading and every step need.
  static int64_t ScratchBytesFor(const ModelConfig& config, const DecoderLimits& limits);

  // On every thread of the team: makes all of it resident.
  void Touch(Worker& worker) const;

  // Says how large the next step is. Outside a parallel region.
  void SetRows(int64_t num_tokens, int64_t num_logits_rows);

  // Views of the first `rows` rows.
  MatrixView<float> hidden(int64_t rows) const;  // [rows, hidden_size], the residual stream
  MatrixView<float> qkv(int64_t rows) const;     // [rows, q_size + 2 kv_size]
  MatrixView<float> logits(int64_t rows) const;  // [rows, vocab_size]

  Activation normed;      // [max_tokens, hidden_size]
  Activation attended;    // [max_tokens, q_size]
  Activation gated;       // [max_tokens, intermediate_size]
  Activation head_input;  // [max_logits_rows, hidden_size]
  Rope rope;
  PagedAttention attention;

 private:
  int64_t hidden_size_;
  int64_t qkv_size_;
  int64_t vocab_size_;
  Buffer hidden_;
  Buffer qkv_;
  Buffer logits_;
};

}  // namespace quire
