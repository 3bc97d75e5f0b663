#include "engine/ops/paged_attention.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>

#include "engine/base/check.h"
#include "engine/base/math.h"
#include "engine/ops/attention_kernels.h"
#include "engine/ops/convert.h"

namespace quire {
namespace {

// Rows of one item's matmuls: enough to pay for expanding a key tile, few enough for the second-level cache.
constexpr int64_t kMaxItemRows = 192;
// Up to here, vector code that reads the cache as it lies beats expanding tiles for the micro-kernels.
constexpr int64_t kMaxVectorRows = 8;
// Widths of a key tile that micro-kernels are made for.
constexpr int64_t kKeyStep = 64;
// Keys are split among threads when a step has fewer items than this for each thread.
constexpr int64_t kItemsPerThread = 4;

int64_t QueriesPerItem(int64_t group) { return std::max<int64_t>(1, kMaxItemRows / group); }
int64_t RowsPerItem(int64_t group) { return QueriesPerItem(group) * group; }
int64_t Group(const AttentionConfig& config) { return config.num_heads / config.layout.num_kv_heads; }

int64_t MaxPartials(const AttentionConfig& config) {
  return kItemsPerThread * config.num_threads * CeilDiv(config.max_seq_len, PagedAttention::kKeyTile);
}

int64_t FloatsPerPartial(const AttentionConfig& config) { return kMaxVectorRows * (config.layout.head_dim + 2); }

// The tiles of the blocks that hold keys [first_key, first_key + num_keys) of a sequence.
struct BlockTiles {
  std::array<const std::byte*, PagedAttention::kKeyTile / 16> tiles;
  TileRun run;

  template <typename TileOf>
  BlockTiles(const KvLayout& layout, const BlockId* block_table, int64_t first_key, int64_t num_keys, TileOf tile_of) {
    const int64_t num_blocks = CeilDiv(num_keys, layout.block_size);
    const BlockId* blocks = block_table + first_key / layout.block_size;
    for (int64_t i = 0; i < num_blocks; ++i) tiles[i] = tile_of(blocks[i]);
    run = {tiles.data(), num_blocks, layout.block_size, layout.head_dim, layout.dtype};
  }
};

// All keys of the run as one f32 matrix [head_dim, width].
void ExpandKeys(const TileRun& keys, int64_t width, float* out) {
  for (int64_t i = 0; i < keys.num_blocks; ++i) {
    float* columns = out + i * keys.block_size;
    if (keys.dtype == DType::kBF16) {
      ExpandBFloat16Pairs(reinterpret_cast<const BFloat16*>(keys.tiles[i]), keys.head_dim, keys.block_size, columns,
                          width);
      continue;
    }
    const auto* tile = reinterpret_cast<const float*>(keys.tiles[i]);
    for (int64_t d = 0; d < keys.head_dim; ++d) {
      std::memcpy(columns + d * width, tile + d * keys.block_size, keys.block_size * sizeof(float));
    }
  }
}

// The first num_tokens values of the run as one f32 matrix [width, head_dim], zero past num_tokens.
void ExpandValues(const TileRun& values, int64_t num_tokens, int64_t width, float* out) {
  const int64_t tile_floats = values.block_size * values.head_dim;
  for (int64_t i = 0; i < values.num_blocks; ++i) {
    if (values.dtype == DType::kBF16) {
      ExpandBFloat16Pairs(reinterpret_cast<const BFloat16*>(values.tiles[i]), values.block_size, values.head_dim,
                          out + i * tile_floats, values.head_dim);
    } else {
      std::memcpy(out + i * tile_floats, values.tiles[i], tile_floats * sizeof(float));
    }
  }
  std::fill(out + num_tokens * values.head_dim, out + width * values.head_dim, 0.0F);
}

}  // namespace

// The running softmax of an item's rows: each row's greatest score so far, the sum of its weights, and the weighted sum
// of values, both relative to that greatest score.
struct PagedAttention::State {
  float* max;     // [rows]
  float* sum;     // [rows]
  float* values;  // [rows, head_dim]

  void Reset(int64_t rows, int64_t head_dim) const {
    std::fill_n(max, rows, -std::numeric_limits<float>::infinity());
    std::fill_n(sum, rows, 0.0F);
    std::fill_n(values, rows * head_dim, 0.0F);
  }

  // Adds a tile's part to a row. The part must hold at least one key.
  void Join(int64_t row, const SoftmaxStats& stats, const float* tile_values, int64_t head_dim) const {
    const float new_max = std::max(max[row], stats.max);
    const float old_factor = std::exp(max[row] - new_max);  // 0 at first
    const float tile_factor = std::exp(stats.max - new_max);
    sum[row] = sum[row] * old_factor + stats.sum * tile_factor;
    ScaleAdd(values + row * head_dim, old_factor, tile_values, tile_factor, head_dim);
    max[row] = new_max;
  }
};

// A worker's scratch, cut into the parts that an item needs.
struct PagedAttention::Scratch {
  float* queries;          // [rows, head_dim], scaled
  float* scores;           // [rows, kKeyTile]
  float* tile_values;      // [rows, head_dim]
  State state;             // [rows]
  float* expanded_keys;    // [head_dim, kKeyTile]
  float* expanded_values;  // [kKeyTile, head_dim]
  std::byte* brgemm;       // [Brgemm::kScratchBytes]

  // Sizes in floats, in the order of the members.
  static std::array<int64_t, 8> Sizes(const AttentionConfig& config) {
    const int64_t rows = RowsPerItem(Group(config));
    const int64_t row_values = rows * config.layout.head_dim;
    const int64_t tile = kKeyTile * config.layout.head_dim;
    return {row_values, rows * kKeyTile, row_values, rows, rows, row_values, tile, tile};
  }

  static Scratch In(std::span<std::byte> bytes, const AttentionConfig& config) {
    std::array<float*, 8> parts;
    std::byte* next = bytes.data();
    const auto sizes = Sizes(config);
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i] = reinterpret_cast<float*>(next);
      next += AlignUp<int64_t>(sizes[i] * sizeof(float), 64);
    }
    return {parts[0], parts[1], parts[2], {parts[3], parts[4], parts[5]}, parts[6], parts[7], next};
  }
};

PagedAttention::PagedAttention(const AttentionConfig& config)
    : config_(config), partials_(MaxPartials(config) * FloatsPerPartial(config) * static_cast<int64_t>(sizeof(float))) {
  QUIRE_CHECK_EQ(config.num_heads % config.layout.num_kv_heads, 0);
  QUIRE_CHECK_EQ(kKeyTile % config.layout.block_size, 0);
  QUIRE_CHECK_LE(group(), kMaxItemRows);
  const int64_t max_items =
      config.layout.num_kv_heads * (config.max_num_seqs + CeilDiv(config.max_tokens, QueriesPerItem(group())));
  items_.reserve(max_items + MaxPartials(config));
  joins_.reserve(kItemsPerThread * config.num_threads);
  const int64_t head_dim = config.layout.head_dim;
  for (int64_t width = kKeyStep; width <= kKeyTile; width += kKeyStep) {
    auto scores = Brgemm::Create({.n = width, .k = head_dim, .lda = head_dim, .ldc = kKeyTile});
    auto values = Brgemm::Create({.n = head_dim, .k = width, .lda = kKeyTile, .ldc = head_dim});
    if (!scores || !values) {
      score_kernels_.clear();
      value_kernels_.clear();
      return;
    }
    score_kernels_.push_back(*std::move(scores));
    value_kernels_.push_back(*std::move(values));
  }
}

int64_t PagedAttention::BytesFor(const AttentionConfig& config) {
  return MaxPartials(config) * FloatsPerPartial(config) * static_cast<int64_t>(sizeof(float));
}

int64_t PagedAttention::ScratchBytesFor(const AttentionConfig& config) {
  int64_t bytes = Brgemm::kScratchBytes;
  for (const int64_t size : Scratch::Sizes(config)) bytes += AlignUp<int64_t>(size * sizeof(float), 64);
  return bytes;
}

int64_t PagedAttention::Position(int64_t seq, int64_t query) const {
  return batch_.seq_lens[seq] - (batch_.query_start_loc[seq + 1] - query);
}

void PagedAttention::SetBatch(const AttentionBatch& batch) {
  batch_ = batch;
  items_.clear();
  joins_.clear();
  const auto num_seqs = static_cast<int64_t>(batch.seq_lens.size());
  const int64_t num_queries = batch.query_start_loc[num_seqs];
  const int64_t min_items = config_.layout.num_kv_heads * std::max(num_seqs, num_queries / QueriesPerItem(group()));
  const bool split_keys = min_items < kItemsPerThread * config_.num_threads;
  for (int64_t seq = 0; seq < num_seqs; ++seq) AddItems(seq, split_keys);
}

void PagedAttention::AddItems(int64_t seq, bool split_keys) {
  const int64_t end_query = batch_.query_start_loc[seq + 1];
  for (int64_t query = batch_.query_start_loc[seq]; query < end_query; query += QueriesPerItem(group())) {
    const int64_t num_queries = std::min(QueriesPerItem(group()), end_query - query);
    const int64_t num_tiles = Position(seq, query + num_queries - 1) / kKeyTile + 1;
    for (int64_t head = 0; head < config_.layout.num_kv_heads; ++head) {
      Item item = {seq, head, query, num_queries, 0, num_tiles, -1};
      if (!split_keys || num_tiles == 1 || num_queries * group() > kMaxVectorRows) {
        items_.push_back(item);
        continue;
      }
      item.partial = joins_.empty() ? 0 : joins_.back().partial + joins_.back().end_tile;
      joins_.push_back(item);
      for (int64_t tile = 0; tile < num_tiles; ++tile) {
        items_.push_back({seq, head, query, num_queries, tile, tile + 1, item.partial + tile});
      }
    }
  }
}

PagedAttention::State PagedAttention::PartialState(int64_t partial) const {
  float* base = partials_.as<float>() + partial * FloatsPerPartial(config_);
  return {base, base + kMaxVectorRows, base + 2 * kMaxVectorRows};
}

void PagedAttention::Forward(Worker& worker, const KvLayerView& cache, MatrixView<const float> queries,
                             const Activation& out) const {
  const Scratch scratch = Scratch::In(worker.scratch(), config_);
  worker.ForChunks(static_cast<int64_t>(items_.size()), 1, [&](int64_t index, int64_t) {
    const Item& item = items_[index];
    if (item.partial >= 0) {
      Attend(item, cache, queries, PartialState(item.partial), scratch);
    } else {
      Attend(item, cache, queries, scratch.state, scratch);
      WriteOutput(item, scratch.state, out);
    }
  });
  if (joins_.empty()) return;
  const int64_t head_dim = config_.layout.head_dim;
  worker.ForChunks(static_cast<int64_t>(joins_.size()), 1, [&](int64_t index, int64_t) {
    const Item& item = joins_[index];
    const int64_t rows = item.num_queries * group();
    scratch.state.Reset(rows, head_dim);
    for (int64_t tile = 0; tile < item.end_tile; ++tile) {
      const State part = PartialState(item.partial + tile);
      for (int64_t row = 0; row < rows; ++row) {
        if (part.sum[row] == 0.0F) continue;  // all keys of the tile are masked for the row
        scratch.state.Join(row, {part.max[row], part.sum[row]}, part.values + row * head_dim, head_dim);
      }
    }
    WriteOutput(item, scratch.state, out);
  });
}

void PagedAttention::Attend(const Item& item, const KvLayerView& cache, MatrixView<const float> queries,
                            const State& state, const Scratch& scratch) const {
  const int64_t head_dim = config_.layout.head_dim;
  const int64_t rows = item.num_queries * group();
  // Row r is head r % group of query r / group; a query's heads of one group are neighbours already.
  for (int64_t query = 0; query < item.num_queries; ++query) {
    Scale(queries.row_data(item.first_query + query) + item.kv_head * group() * head_dim, config_.score_scale,
          group() * head_dim, scratch.queries + query * group() * head_dim);
  }
  state.Reset(rows, head_dim);
  for (int64_t tile = item.first_tile; tile < item.end_tile; ++tile) AttendTile(item, tile, cache, state, scratch);
}

void PagedAttention::AttendTile(const Item& item, int64_t tile, const KvLayerView& cache, const State& state,
                                const Scratch& scratch) const {
  const int64_t head_dim = config_.layout.head_dim;
  const int64_t rows = item.num_queries * group();
  const int64_t first_key = tile * kKeyTile;
  const int64_t first_position = Position(item.seq, item.first_query);
  // The last query sees the most keys.
  const int64_t num_keys = std::min(kKeyTile, first_position + item.num_queries - first_key);
  ComputeScores(cache, item, first_key, num_keys, rows, scratch);
  const auto valid_keys = [&](int64_t row) {
    return std::clamp<int64_t>(first_position + row / group() + 1 - first_key, 0, num_keys);
  };
  std::array<SoftmaxStats, kMaxItemRows> stats;  // [rows]
  const int64_t width = AlignUp(num_keys, kKeyStep);
  for (int64_t row = 0; row < rows; ++row) {
    float* scores = scratch.scores + row * kKeyTile;
    if (valid_keys(row) == 0) {
      std::fill_n(scores, width, 0.0F);
    } else {
      stats[row] = ExpScores(scores, valid_keys(row), width);
    }
  }
  ComputeOutputs(cache, item, first_key, num_keys, rows, scratch);
  for (int64_t row = 0; row < rows; ++row) {
    if (valid_keys(row) > 0) state.Join(row, stats[row], scratch.tile_values + row * head_dim, head_dim);
  }
}

bool PagedAttention::UsesVectorCode(int64_t rows) const { return score_kernels_.empty() || rows <= kMaxVectorRows; }

void PagedAttention::ComputeScores(const KvLayerView& cache, const Item& item, int64_t first_key, int64_t num_keys,
                                   int64_t rows, const Scratch& scratch) const {
  const BlockId* block_table = batch_.block_tables + item.seq * batch_.max_blocks_per_seq;
  const BlockTiles keys(cache.layout, block_table, first_key, num_keys,
                        [&](BlockId block) { return cache.KeyTile(block, item.kv_head); });
  if (UsesVectorCode(rows)) {
    MultiplyKeys(keys.run, scratch.queries, rows, scratch.scores, kKeyTile);
    return;
  }
  const int64_t steps = CeilDiv(num_keys, kKeyStep);
  ExpandKeys(keys.run, steps * kKeyStep, scratch.expanded_keys);
  score_kernels_[steps - 1].Execute(scratch.queries, scratch.expanded_keys, scratch.scores, rows, scratch.brgemm);
}

void PagedAttention::ComputeOutputs(const KvLayerView& cache, const Item& item, int64_t first_key, int64_t num_keys,
                                    int64_t rows, const Scratch& scratch) const {
  const BlockId* block_table = batch_.block_tables + item.seq * batch_.max_blocks_per_seq;
  const BlockTiles values(cache.layout, block_table, first_key, num_keys,
                          [&](BlockId block) { return cache.ValueTile(block, item.kv_head); });
  if (UsesVectorCode(rows)) {
    MultiplyValues(values.run, scratch.scores, kKeyTile, rows, num_keys, scratch.tile_values);
    return;
  }
  const int64_t steps = CeilDiv(num_keys, kKeyStep);
  ExpandValues(values.run, num_keys, steps * kKeyStep, scratch.expanded_values);
  value_kernels_[steps - 1].Execute(scratch.scores, scratch.expanded_values, scratch.tile_values, rows, scratch.brgemm);
}

void PagedAttention::WriteOutput(const Item& item, const State& state, const Activation& out) const {
  const int64_t head_dim = config_.layout.head_dim;
  const MatrixView<float> y = out.f32(batch_.query_start_loc.back());
  const int64_t first_column = item.kv_head * group() * head_dim;
  for (int64_t row = 0; row < item.num_queries * group(); ++row) {
    const int64_t token = item.first_query + row / group();
    Scale(state.values + row * head_dim, 1.0F / state.sum[row], head_dim,
          y.row_data(token) + first_column + row % group() * head_dim);
  }
  for (int64_t query = 0; query < item.num_queries; ++query) {
    out.FinishColumns(item.first_query + query, first_column, first_column + group() * head_dim);
  }
}

}  // namespace quire
