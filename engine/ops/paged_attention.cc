#include "engine/ops/paged_attention.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "engine/base/check.h"
#include "engine/base/math.h"
#include "engine/ops/attention_kernels.h"

namespace quire {
namespace {

// Rows of one item's matmuls: enough to pay for expanding a key tile, few enough for the second-level cache.
constexpr int64_t kMaxItemRows = 192;
constexpr int64_t kRowBlock = TileMatmuls::kRowBlock;
// Up to here, vector code that reads the cache as it lies beats expanding tiles for the micro-kernels.
constexpr int64_t kMaxVectorRows = 8;
constexpr int64_t kKeyStep = TileMatmuls::kKeyStep;
// Keys are split among threads when a step has fewer items than this for each thread.
constexpr int64_t kItemsPerThread = 4;

int64_t QueriesPerItem(int64_t group) { return std::max<int64_t>(1, kMaxItemRows / group); }
int64_t RowsPerItem(int64_t group) { return QueriesPerItem(group) * group; }
int64_t Group(const AttentionConfig& config) { return config.num_heads / config.layout.num_kv_heads; }

int64_t MaxPartials(const AttentionConfig& config) {
  return kItemsPerThread * config.num_threads * CeilDiv(config.max_seq_len, PagedAttention::kKeyTile);
}

int64_t FloatsPerPartial(const AttentionConfig& config) { return kMaxVectorRows * (config.layout.head_dim + 2); }

void Reset(const SoftmaxState& state, int64_t rows, int64_t head_dim) {
  std::fill_n(state.stats, rows, SoftmaxStats{.max = std::numeric_limits<float>::lowest(), .sum = 0.0F});
  std::fill_n(state.values, rows * head_dim, 0.0F);
}

}  // namespace

// A worker's scratch, cut into the parts that an item needs.
struct PagedAttention::Scratch {
  float* scores;             // [kRowBlock, kKeyTile]
  float* tile_values;        // [kRowBlock, head_dim]
  SoftmaxStats* tile_stats;  // [kRowBlock]
  SoftmaxState state;        // [rows]
  float* key_scales;         // [kKeyTile]
  float* value_scales;       // [kKeyTile]
  TileMatmuls::Scratch matmuls;

  // Vector code's queries lie where the matmuls' would. // [rows, head_dim], scaled
  float* vector_queries() const { return reinterpret_cast<float*>(matmuls.queries); }

  // Sizes in floats, in the order of In.
  static std::array<int64_t, 11> Sizes(const AttentionConfig& config) {
    constexpr int64_t kStats = sizeof(SoftmaxStats) / sizeof(float);
    const int64_t head_dim = config.layout.head_dim;
    const int64_t rows = RowsPerItem(Group(config));
    return {kRowBlock * kKeyTile,
            kRowBlock * head_dim,
            kRowBlock * kStats,
            rows * kStats,
            rows * head_dim,
            kKeyTile,
            kKeyTile,
            rows * head_dim,
            head_dim * TileMatmuls::kKeyStride,
            kKeyTile * head_dim,
            kRowBlock * kKeyTile};
  }

  static Scratch In(std::span<std::byte> bytes, const AttentionConfig& config) {
    const auto sizes = Sizes(config);
    std::array<std::byte*, sizes.size()> parts;
    std::byte* next = bytes.data();
    for (size_t i = 0; i < parts.size(); ++i) {
      parts[i] = next;
      next += AlignUp<int64_t>(sizes[i] * sizeof(float), 64);
    }
    const auto floats = [&](size_t i) { return reinterpret_cast<float*>(parts[i]); };
    const auto stats = [&](size_t i) { return reinterpret_cast<SoftmaxStats*>(parts[i]); };
    return {
        .scores = floats(0),
        .tile_values = floats(1),
        .tile_stats = stats(2),
        .state = {.stats = stats(3), .values = floats(4)},
        .key_scales = floats(5),
        .value_scales = floats(6),
        .matmuls = {.queries = parts[7], .keys = parts[8], .values = parts[9], .weights = parts[10], .brgemm = next}};
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
  UseMatmuls(DType::kF32);
}

bool PagedAttention::UseMatmuls(DType type) {
  if (type == DType::kBF16 && config_.layout.dtype == DType::kF32) return false;
  if (type == matmul_type_) return true;
  auto matmuls = TileMatmuls::Create(type, config_.layout.head_dim);
  if (!matmuls && type != DType::kF32) return false;
  matmuls_ = std::move(matmuls);
  matmul_type_ = type;
  return true;
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

SoftmaxState PagedAttention::PartialState(int64_t partial) const {
  float* base = partials_.as<float>() + partial * FloatsPerPartial(config_);
  return {reinterpret_cast<SoftmaxStats*>(base), base + 2 * kMaxVectorRows};
}

void PagedAttention::Forward(Worker& worker, const KvLayerView& cache, MatrixView<const float> queries,
                             const Activation& out) const {
  const Scratch scratch = Scratch::In(worker.scratch(), config_);
  // From the last on: a prompt's last queries have the most keys, and what is begun late should be short.
  worker.ForChunks(static_cast<int64_t>(items_.size()), 1, [&](int64_t number, int64_t) {
    const int64_t index = static_cast<int64_t>(items_.size()) - 1 - number;
    const Item& item = items_[index];
    const Item* next = index > 0 ? &items_[index - 1] : nullptr;
    if (item.partial >= 0) {
      Attend(item, next, cache, queries, PartialState(item.partial), scratch);
    } else {
      Attend(item, next, cache, queries, scratch.state, scratch);
      WriteOutput(item, scratch.state, out);
    }
  });
  if (joins_.empty()) return;
  const int64_t head_dim = config_.layout.head_dim;
  worker.ForChunks(static_cast<int64_t>(joins_.size()), 1, [&](int64_t index, int64_t) {
    const Item& item = joins_[index];
    const int64_t rows = item.num_queries * group();
    Reset(scratch.state, rows, head_dim);
    for (int64_t tile = 0; tile < item.end_tile; ++tile) {
      const SoftmaxState part = PartialState(item.partial + tile);
      JoinTile(scratch.state, part.stats, part.values, rows, head_dim);
    }
    WriteOutput(item, scratch.state, out);
  });
}

int64_t PagedAttention::NumKeys(const Item& item, int64_t tile) const {
  // The last query sees the most keys.
  return std::min(kKeyTile, Position(item.seq, item.first_query) + item.num_queries - tile * kKeyTile);
}

KvTiles PagedAttention::TilesOf(const Item& item, int64_t tile, const Item* next, const KvLayerView& cache) const {
  const auto blocks_of = [&](const Item& of, int64_t its_tile) {
    return batch_.block_tables + of.seq * batch_.max_blocks_per_seq + its_tile * kKeyTile / cache.layout.block_size;
  };
  KvTiles tiles(cache, item.kv_head, blocks_of(item, tile), NumKeys(item, tile));
  if (tile + 1 < item.end_tile) {
    tiles.ReadNext(cache, item.kv_head, blocks_of(item, tile + 1), NumKeys(item, tile + 1));
  } else if (next != nullptr) {
    tiles.ReadNext(cache, next->kv_head, blocks_of(*next, next->first_tile), NumKeys(*next, next->first_tile));
  }
  return tiles;
}

void PagedAttention::Attend(const Item& item, const Item* next, const KvLayerView& cache,
                            MatrixView<const float> queries, const SoftmaxState& state, const Scratch& scratch) const {
  const int64_t head_dim = config_.layout.head_dim;
  const int64_t rows = item.num_queries * group();
  // Row r is head r % group of query r / group; a query's heads of one group are neighbours already.
  for (int64_t query = 0; query < item.num_queries; ++query) {
    const float* from = queries.row_data(item.first_query + query) + item.kv_head * group() * head_dim;
    if (UsesVectorCode(rows)) {
      Scale(from, config_.score_scale, group() * head_dim, scratch.vector_queries() + query * group() * head_dim);
    } else {
      matmuls_->SetQueries(from, config_.score_scale, query * group(), group(), scratch.matmuls);
    }
  }
  Reset(state, rows, head_dim);
  const bool has_scales = cache.layout.dtype == DType::kInt8;
  for (int64_t tile = item.first_tile; tile < item.end_tile; ++tile) {
    const KvTiles tiles = TilesOf(item, tile, next, cache);
    if (has_scales) tiles.CopyScales(scratch.key_scales, scratch.value_scales);
    const ScoreTile scores = {.scores = scratch.scores,
                              .rows = rows,
                              .width = AlignUp(NumKeys(item, tile), kKeyStep),
                              .stride = kKeyTile,
                              .num_keys = NumKeys(item, tile),
                              .group = group(),
                              .first_row_keys = Position(item.seq, item.first_query) + 1 - tile * kKeyTile,
                              .key_scales = has_scales ? scratch.key_scales : nullptr,
                              .value_scales = has_scales ? scratch.value_scales : nullptr};
    if (!UsesVectorCode(rows)) matmuls_->SetTile(tiles, scores.width, scratch.matmuls);
    AttendTile(tiles, scores, state, scratch);
  }
}

bool PagedAttention::UsesVectorCode(int64_t rows) const { return !matmuls_ || rows <= kMaxVectorRows; }

void PagedAttention::AttendTile(const KvTiles& tiles, const ScoreTile& all, const SoftmaxState& state,
                                const Scratch& scratch) const {
  const int64_t head_dim = config_.layout.head_dim;
  for (int64_t row = 0; row < all.rows; row += kRowBlock) {
    ScoreTile block = all;
    block.rows = std::min(kRowBlock, all.rows - row);
    block.row_offset = row;
    // The block's last row sees the most keys.
    block.num_keys = std::min(all.num_keys, all.first_row_keys + (row + block.rows - 1) / group());
    if (block.num_keys <= 0) continue;
    block.width = AlignUp(block.num_keys, kKeyStep);
    if (UsesVectorCode(all.rows)) {
      MultiplyKeys(tiles.Keys(), scratch.vector_queries() + row * head_dim, block.rows, block.scores, block.stride);
      ExpScores(block, scratch.tile_stats);
      MultiplyValues(tiles.Values(), block.scores, block.stride, block.rows, block.num_keys, scratch.tile_values);
    } else {
      matmuls_->MultiplyKeys(row, block.rows, block.width, scratch.matmuls, block.scores);
      ExpScores(block, scratch.tile_stats);
      matmuls_->MultiplyValues(block.scores, block.rows, block.width, scratch.matmuls, scratch.tile_values);
    }
    const SoftmaxState rows = {state.stats + row, state.values + row * head_dim};
    JoinTile(rows, scratch.tile_stats, scratch.tile_values, block.rows, head_dim);
  }
}

void PagedAttention::WriteOutput(const Item& item, const SoftmaxState& state, const Activation& out) const {
  const int64_t head_dim = config_.layout.head_dim;
  const int64_t columns = group() * head_dim;  // of a query: the heads of the group
  for (int64_t row = 0; row < item.num_queries * group(); ++row) {
    float* values = state.values + row * head_dim;
    Scale(values, 1.0F / state.stats[row].sum, head_dim, values);
  }
  for (int64_t query = 0; query < item.num_queries; ++query) {
    out.Write(item.first_query + query, item.kv_head * columns,
              {state.values + query * columns, static_cast<size_t>(columns)});
  }
}

}  // namespace quire
