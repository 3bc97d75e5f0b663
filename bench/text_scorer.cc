#include "bench/text_scorer.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/base/math.h"
#include "engine/base/status.h"
#include "engine/runtime/engine_builder.h"

namespace quire {

TextScorer::TextScorer(std::unique_ptr<Decoder> decoder, const WindowPlan& plan, int64_t num_blocks)
    : decoder_(std::move(decoder)), plan_(plan) {
  batch_.block_tables.resize(num_blocks);  // in order, so that a position is its own slot
  std::iota(batch_.block_tables.begin(), batch_.block_tables.end(), 0);
  batch_.max_blocks_per_seq = num_blocks;
}

absl::StatusOr<TextScorer> TextScorer::Load(const Checkpoint& checkpoint, const EngineConfig& config,
                                            const WindowPlan& window_plan) {
  EngineConfig alone = config;
  alone.max_num_seqs = 1;
  QUIRE_ASSIGN_OR_RETURN(EnginePlan plan, PlanEngine(checkpoint, alone, {}, PlanPurpose::kStart));
  if (window_plan.window_tokens > plan.model.context_length) {
    return InvalidArgument("window", window_plan.window_tokens,
                           StrCat("at most the model's context, ", plan.model.context_length, " tokens"));
  }
  const int64_t step_tokens = std::min(window_plan.step_tokens, window_plan.window_tokens);
  plan.decoder_limits.max_tokens = step_tokens;
  plan.decoder_limits.max_logits_rows = step_tokens;
  plan.decoder_limits.max_seq_len = window_plan.window_tokens;
  plan.memory.num_blocks = CeilDiv(window_plan.window_tokens, plan.decoder_limits.kv_layout.block_size);
  QUIRE_ASSIGN_OR_RETURN(LoadedDecoder loaded, LoadDecoder(checkpoint, plan.model, plan.weights,
                                                           DecoderOptionsFor(alone, plan), [](int64_t, int64_t) {}));
  TextScorer scorer(std::move(loaded.decoder), window_plan, plan.memory.num_blocks);
  scorer.types_ = StrCat("weights ", plan.weights.DescribeTypes(), ", computed in ", loaded.kernels.compute_type, " (",
                         loaded.kernels.reason, "), KV cache ", ToString(plan.kv_type));
  return scorer;
}

void TextScorer::SetBatch(std::span<const TokenId> window, int64_t begin, int64_t end) {
  const int64_t num_tokens = end - begin;
  batch_.token_ids.assign(window.begin() + begin, window.begin() + end);
  batch_.positions.resize(num_tokens);
  std::iota(batch_.positions.begin(), batch_.positions.end(), begin);
  batch_.slot_mapping.assign(batch_.positions.begin(), batch_.positions.end());
  batch_.query_start_loc = {0, num_tokens};
  batch_.seq_lens = {end};
  batch_.logits_indices.clear();
  for (int64_t position = std::max(begin, plan_.first_scored()); position < std::min(end, plan_.window_tokens - 1);
       ++position) {
    batch_.logits_indices.push_back(position - begin);
  }
}

void TextScorer::Score(std::span<const TokenId> window, const std::function<void(int64_t, MatrixView<float>)>& visit) {
  QUIRE_CHECK_EQ(static_cast<int64_t>(window.size()), plan_.window_tokens);
  for (int64_t begin = 0; begin < plan_.window_tokens; begin += plan_.step_tokens) {
    const int64_t end = std::min(begin + plan_.step_tokens, plan_.window_tokens);
    SetBatch(window, begin, end);
    const MatrixView<float> logits = decoder_->Forward(batch_);
    if (batch_.num_logits_rows() > 0) visit(begin + batch_.logits_indices.front() - plan_.first_scored(), logits);
  }
}

}  // namespace quire
