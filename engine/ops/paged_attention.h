#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "engine/base/ids.h"
#include "engine/ops/activation.h"
#include "engine/ops/kv_layout.h"
#include "engine/ops/kv_tiles.h"
#include "engine/ops/parallel.h"
#include "engine/ops/softmax_kernels.h"
#include "engine/ops/tile_matmuls.h"
#include "engine/tensor/buffer.h"
#include "engine/tensor/tensor_view.h"

namespace quire {

struct AttentionConfig {
  int64_t num_heads = 0;  // a multiple of layout.num_kv_heads
  KvLayout layout;
  float score_scale = 1.0F;  // usually 1 / sqrt(head_dim)
  int64_t max_seq_len = 0;   // tokens
  int64_t max_num_seqs = 0;
  int64_t max_tokens = 0;  // queries of one step
  int64_t num_threads = 0;
};

// The sequences of one step. Sequence s has queries [query_start_loc[s], query_start_loc[s + 1]), which are its last
// tokens, and seq_lens[s] tokens in the cache, those queries included.
struct AttentionBatch {
  std::span<const int64_t> query_start_loc;  // [num_seqs + 1]
  std::span<const int64_t> seq_lens;         // [num_seqs]
  const BlockId* block_tables = nullptr;     // [num_seqs, max_blocks_per_seq]
  int64_t max_blocks_per_seq = 0;
};

// Causal grouped-query attention over a block-paged cache, for a ragged batch of prefill chunks and decodes:
//   out[t, h] = sum over keys j <= t of softmax_j(scale * q[t, h] . k[j, h / group]) v[j, h / group]
// The query heads of a group, and neighbouring queries, are rows of one matmul that reads each key and value once.
// Keys are taken in tiles of kKeyTile tokens anchored at absolute positions; a running softmax (row maximum
// subtracted, masked keys left out) joins the tiles in order, so no full score matrix exists and a row's result does
// not depend on how its sequence was cut into chunks, nor on its neighbours. Sources: Vaswani et al., "Attention Is All
// You Need", 2017; Ainslie et al., "GQA", 2023; Milakov and Gimelshein, "Online normalizer calculation for softmax",
// 2018.
class PagedAttention {
 public:
  static constexpr int64_t kKeyTile = KvTiles::kKeyTile;

  explicit PagedAttention(const AttentionConfig& config);
  const AttentionConfig& config() const { return config_; }
  static int64_t BytesFor(const AttentionConfig& config);
  // Each worker's scratch that Forward needs.
  static int64_t ScratchBytesFor(const AttentionConfig& config);

  // Computes the matmuls of many rows, those of prompts, in f32 (as at first) or bf16 (tile_matmuls.h) from now on.
  // False, and nothing changes, if the cache is f32 or this processor has no kernels for it. Outside a step.
  bool UseMatmuls(DType type);

  // Cuts the step into work items, once for all layers; outside a parallel region. `batch` must stay until the step
  // ends.
  void SetBatch(const AttentionBatch& batch);

  // out [num_tokens, num_heads * head_dim] from queries [num_tokens, >= num_heads * head_dim], rotated already; the
  // step's keys and values are in the cache. Finishes the activation's rows.
  void Forward(Worker& worker, const KvLayerView& cache, MatrixView<const float> queries, const Activation& out) const;

 private:
  // Queries [first_query, first_query + num_queries) of one sequence (rows of the batch's token arrays) and the query
  // heads of one kv head, over key tiles [first_tile, end_tile).
  struct Item {
    int64_t seq;
    int64_t kv_head;
    int64_t first_query;
    int64_t num_queries;
    int64_t first_tile;
    int64_t end_tile;
    int64_t partial;  // where its state goes to be joined later; -1: it has all tiles and writes the output
  };
  struct Scratch;

  int64_t group() const { return config_.num_heads / config_.layout.num_kv_heads; }
  int64_t Position(int64_t seq, int64_t query) const;
  void AddItems(int64_t seq, bool split_keys);
  SoftmaxState PartialState(int64_t partial) const;
  // `next` is what the thread will probably do after it, or null.
  void Attend(const Item& item, const Item* next, const KvLayerView& cache, MatrixView<const float> queries,
              const SoftmaxState& state, const Scratch& scratch) const;
  KvTiles TilesOf(const Item& item, int64_t tile, const Item* next, const KvLayerView& cache) const;
  int64_t NumKeys(const Item& item, int64_t tile) const;
  void AttendTile(const KvTiles& tiles, const ScoreTile& all, const SoftmaxState& state, const Scratch& scratch) const;
  bool UsesVectorCode(int64_t rows) const;
  void WriteOutput(const Item& item, const SoftmaxState& state, const Activation& out) const;

  AttentionConfig config_;
  std::optional<DType> matmul_type_;
  std::optional<TileMatmuls> matmuls_;  // none: the processor has no micro-kernels, and vector code does it all
  AttentionBatch batch_;
  std::vector<Item> items_;
  std::vector<Item> joins_;  // partial: the first of the item's partial states, one for each tile
  Buffer partials_;          // [max_partials, kMaxVectorRows, head_dim + 2]
};

}  // namespace quire
