#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/ids.h"
#include "engine/ops/kv_layout.h"
#include "engine/ops/paged_attention.h"
#include "engine/ops/parallel.h"
#include "engine/tensor/buffer.h"

namespace quire::testing {

using Matrix = std::vector<std::vector<float>>;

struct AttentionShape {
  int64_t num_heads = 1;
  int64_t num_kv_heads = 1;
  int64_t head_dim = 8;
  int64_t block_size = 16;
  DType kv_type = DType::kF32;
  float score_scale = 1.0F;
  int64_t num_threads = 2;
};

// One sequence's rows, a row for each token.
struct AttentionSequence {
  Matrix queries;  // [num_tokens, num_heads * head_dim]
  Matrix keys;     // [num_tokens, num_kv_heads * head_dim]
  Matrix values;   // [num_tokens, num_kv_heads * head_dim]
};

// The serving attention over a real paged cache: each sequence's blocks lie in shuffled order among all others', and
// every block holds large numbers before it is written, so that a key that should be masked shows.
class AttentionHarness {
 public:
  AttentionHarness(const AttentionShape& shape, const std::vector<AttentionSequence>& sequences);

  // As PagedAttention's.
  bool UseMatmuls(DType type) { return attention_.UseMatmuls(type); }

  // Writes tokens [begin, end) of each sequence into the cache and attends with their queries, all sequences in one
  // step. Ranges are per sequence; an empty one leaves the sequence out. Rows of all sequences, in order.
  Matrix Step(const std::vector<int64_t>& begins, const std::vector<int64_t>& ends);

  // All sequences whole, in one step.
  Matrix Whole();

 private:
  AttentionShape shape_;
  std::vector<AttentionSequence> sequences_;
  KvLayout layout_;
  ThreadTeam team_;
  Buffer keys_;
  Buffer values_;
  int64_t blocks_per_seq_;
  std::vector<BlockId> block_tables_;  // [num_seqs, blocks_per_seq]
  PagedAttention attention_;
};

// The formula, in double precision, without a cache: every score, then a softmax over keys [0, t].
Matrix ReferenceAttention(const AttentionShape& shape, const AttentionSequence& sequence);

// Normally distributed, from the seed.
AttentionSequence RandomSequence(const AttentionShape& shape, int64_t num_tokens, uint64_t seed);

double LargestDifference(const Matrix& a, const Matrix& b);

}  // namespace quire::testing
