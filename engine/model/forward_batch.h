#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/ids.h"

namespace quire {

struct KvBlockCopy {
  BlockId from;
  BlockId to;
};

// The ragged batch of one step: prefill chunks and decodes side by side, one forward pass. Sequence s owns rows
// [query_start_loc[s], query_start_loc[s + 1]) of the token arrays.
struct ForwardBatch {
  std::vector<TokenId> token_ids;        // [num_tokens]
  std::vector<int64_t> positions;        // [num_tokens], absolute
  std::vector<SlotId> slot_mapping;      // [num_tokens], where each token's K and V go
  std::vector<int64_t> query_start_loc;  // [num_seqs + 1], from 0 to num_tokens
  std::vector<int64_t> seq_lens;         // [num_seqs], tokens in the cache once this step's are written
  std::vector<BlockId> block_tables;     // [num_seqs, max_blocks_per_seq], rows padded
  int64_t max_blocks_per_seq = 0;
  std::vector<int64_t> logits_indices;    // [num_logits_rows], ascending rows of the token arrays
  std::vector<KvBlockCopy> block_copies;  // done first

  int64_t num_tokens() const { return static_cast<int64_t>(token_ids.size()); }
  int64_t num_seqs() const { return static_cast<int64_t>(seq_lens.size()); }
  int64_t num_logits_rows() const { return static_cast<int64_t>(logits_indices.size()); }
  const BlockId* block_table(int64_t seq) const { return block_tables.data() + seq * max_blocks_per_seq; }
};

}  // namespace quire
