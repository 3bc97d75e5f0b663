#include "engine/model/workspace.h"

#include <algorithm>
#include <cmath>

#include "engine/base/math.h"
#include "engine/model/weights.h"
#include "engine/ops/rms_norm.h"

namespace quire {
namespace {

// Linear layers write rows of whole panels.
int64_t RowStride(int64_t width) { return AlignUp(width, kPanelWidth); }

int64_t MatrixBytes(int64_t rows, int64_t width) { return rows * RowStride(width) * SizeOf(DType::kF32); }

MatrixView<float> View(const Buffer& buffer, int64_t rows, int64_t width) {
  return {buffer.as<float>(), rows, width, RowStride(width)};
}

AttentionConfig AttentionConfigFor(const ModelConfig& config, const DecoderLimits& limits) {
  return {.num_heads = config.num_heads,
          .layout = limits.kv_layout,
          .score_scale = 1.0F / std::sqrt(static_cast<float>(config.head_dim)),
          .max_seq_len = limits.max_seq_len,
          .max_num_seqs = limits.max_num_seqs,
          .max_tokens = limits.max_tokens,
          .num_threads = limits.num_threads};
}

}  // namespace

KvLayout KvLayoutFor(const ModelConfig& config, int64_t block_size, DType dtype) {
  return {.num_kv_heads = config.num_kv_heads, .head_dim = config.head_dim, .block_size = block_size, .dtype = dtype};
}

Workspace::Workspace(const ModelConfig& config, const DecoderLimits& limits, const InputFormsBySite& forms)
    : normed(limits.max_tokens, config.hidden_size, forms.normed),
      attended(limits.max_tokens, config.q_size(), forms.attended),
      gated(limits.max_tokens, config.intermediate_size, forms.gated),
      head_input(limits.max_logits_rows, config.hidden_size, forms.head_input),
      rope(config.rope, limits.max_tokens),
      attention(AttentionConfigFor(config, limits)),
      hidden_size_(config.hidden_size),
      qkv_size_(config.qkv_size()),
      vocab_size_(config.vocab_size),
      hidden_(MatrixBytes(limits.max_tokens, hidden_size_)),
      qkv_(MatrixBytes(limits.max_tokens, qkv_size_)),
      logits_(MatrixBytes(limits.max_logits_rows, vocab_size_)) {}

int64_t Workspace::BytesFor(const ModelConfig& config, const DecoderLimits& limits, const InputFormsBySite& forms) {
  return Activation::BytesFor(limits.max_tokens, config.hidden_size, forms.normed) +
         Activation::BytesFor(limits.max_tokens, config.q_size(), forms.attended) +
         Activation::BytesFor(limits.max_tokens, config.intermediate_size, forms.gated) +
         Activation::BytesFor(limits.max_logits_rows, config.hidden_size, forms.head_input) +
         Rope::BytesFor(config.rope, limits.max_tokens) + PagedAttention::BytesFor(AttentionConfigFor(config, limits)) +
         MatrixBytes(limits.max_tokens, config.hidden_size) + MatrixBytes(limits.max_tokens, config.qkv_size()) +
         MatrixBytes(limits.max_logits_rows, config.vocab_size) + limits.num_threads * ScratchBytesFor(config, limits);
}

int64_t Workspace::ScratchBytesFor(const ModelConfig& config, const DecoderLimits& limits) {
  const int64_t longest_row = std::max({config.hidden_size, config.q_size(), config.intermediate_size});
  return std::max({PackedLinear::ScratchBytesFor(longest_row), RmsNormScratchBytes(config.hidden_size),
                   PagedAttention::ScratchBytesFor(AttentionConfigFor(config, limits)), LoadScratchBytesFor(config)});
}

void Workspace::SetRows(int64_t num_tokens, int64_t num_logits_rows) {
  for (Activation* activation : {&normed, &attended, &gated}) activation->SetRows(num_tokens);
  head_input.SetRows(num_logits_rows);
}

void Workspace::Touch(Worker& worker) const {
  for (const Activation* activation : {&normed, &attended, &gated, &head_input}) activation->Touch(worker);
  for (const Buffer* buffer : {&hidden_, &qkv_, &logits_}) TouchPages(worker, *buffer);
}

MatrixView<float> Workspace::hidden(int64_t rows) const { return View(hidden_, rows, hidden_size_); }
MatrixView<float> Workspace::qkv(int64_t rows) const { return View(qkv_, rows, qkv_size_); }
MatrixView<float> Workspace::logits(int64_t rows) const { return View(logits_, rows, vocab_size_); }

}  // namespace quire
