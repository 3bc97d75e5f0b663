#include "engine/runtime/forward_batch_builder.h"

#include <algorithm>

#include "engine/base/check.h"

namespace quire {

ForwardBatchBuilder::ForwardBatchBuilder(const ForwardBatchLimits& limits) : block_size_(limits.block_size) {
  batch_.token_ids.reserve(limits.max_num_batched_tokens);
  batch_.positions.reserve(limits.max_num_batched_tokens);
  batch_.slot_mapping.reserve(limits.max_num_batched_tokens);
  batch_.query_start_loc.reserve(limits.max_num_seqs + 1);
  batch_.seq_lens.reserve(limits.max_num_seqs);
  batch_.block_tables.reserve(limits.max_num_seqs * limits.max_blocks_per_seq);
  batch_.logits_indices.reserve(limits.max_num_logits_rows);
}

int64_t ForwardBatchBuilder::BytesFor(const ForwardBatchLimits& limits) {
  constexpr int64_t kBytesPerToken = sizeof(TokenId) + sizeof(int64_t) + sizeof(SlotId);
  const int64_t bytes_per_seq =
      2 * static_cast<int64_t>(sizeof(int64_t)) + limits.max_blocks_per_seq * static_cast<int64_t>(sizeof(BlockId));
  return limits.max_num_batched_tokens * kBytesPerToken + limits.max_num_seqs * bytes_per_seq +
         limits.max_num_logits_rows * static_cast<int64_t>(sizeof(int64_t));
}

const ForwardBatch& ForwardBatchBuilder::Build(const StepPlan& plan) {
  batch_.token_ids.clear();
  batch_.positions.clear();
  batch_.slot_mapping.clear();
  batch_.query_start_loc.assign(1, 0);
  batch_.seq_lens.clear();
  batch_.block_tables.clear();
  batch_.logits_indices.clear();
  batch_.block_copies.clear();
  batch_.max_blocks_per_seq = 0;
  for (const ScheduledRequest& scheduled : plan.requests) {
    const auto num_blocks = static_cast<int64_t>(scheduled.block_table.size());
    batch_.max_blocks_per_seq = std::max(batch_.max_blocks_per_seq, num_blocks);
  }
  for (const BlockCopy& copy : plan.block_copies) batch_.block_copies.push_back({copy.from, copy.to});
  for (const ScheduledRequest& scheduled : plan.requests) {
    AppendLogitsRows(scheduled);  // counts from the tokens before this request's
    AppendTokens(scheduled);
    AppendBlockTable(scheduled);
  }
  QUIRE_DCHECK(batch_.num_tokens() == plan.num_tokens);
  QUIRE_DCHECK(batch_.num_logits_rows() == plan.num_logits_rows);
  return batch_;
}

void ForwardBatchBuilder::AppendTokens(const ScheduledRequest& scheduled) {
  const int64_t end_position = scheduled.first_position + scheduled.num_scheduled_tokens();
  batch_.token_ids.insert(batch_.token_ids.end(), scheduled.token_ids.begin(), scheduled.token_ids.end());
  for (int64_t position = scheduled.first_position; position < end_position; ++position) {
    const SlotId block = scheduled.block_table[position / block_size_];
    batch_.positions.push_back(position);
    batch_.slot_mapping.push_back(block * block_size_ + position % block_size_);
  }
  batch_.query_start_loc.push_back(batch_.num_tokens());
  batch_.seq_lens.push_back(end_position);
}

void ForwardBatchBuilder::AppendBlockTable(const ScheduledRequest& scheduled) {
  batch_.block_tables.insert(batch_.block_tables.end(), scheduled.block_table.begin(), scheduled.block_table.end());
  // Padding is never read; block 0 exists, so that a careless prefetch stays in bounds.
  batch_.block_tables.resize(batch_.num_seqs() * batch_.max_blocks_per_seq, 0);
}

void ForwardBatchBuilder::AppendLogitsRows(const ScheduledRequest& scheduled) {
  for (int64_t row = scheduled.first_logits_row; row < scheduled.end_logits_row; ++row) {
    batch_.logits_indices.push_back(batch_.num_tokens() + row);
  }
}

}  // namespace quire
