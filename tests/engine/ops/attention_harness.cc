#include "tests/engine/ops/attention_harness.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <numeric>
#include <random>
#include <span>

#include "engine/base/math.h"
#include "engine/ops/activation.h"
#include "engine/ops/kv_write.h"

namespace quire::testing {
namespace {

int64_t LongestSequence(const std::vector<AttentionSequence>& sequences) {
  size_t longest = 0;
  for (const AttentionSequence& sequence : sequences) longest = std::max(longest, sequence.keys.size());
  return static_cast<int64_t>(longest);
}

AttentionConfig ConfigFor(const AttentionShape& shape, const std::vector<AttentionSequence>& sequences) {
  const int64_t longest = LongestSequence(sequences);
  const auto num_seqs = static_cast<int64_t>(sequences.size());
  return {.num_heads = shape.num_heads,
          .layout = {shape.num_kv_heads, shape.head_dim, shape.block_size, shape.kv_type},
          .score_scale = shape.score_scale,
          .max_seq_len = longest,
          .max_num_seqs = num_seqs,
          .max_tokens = longest * num_seqs,
          .num_threads = shape.num_threads};
}

void FillWithLargeNumbers(const Buffer& buffer, DType dtype) {
  if (dtype == DType::kBF16) {
    std::fill_n(buffer.as<BFloat16>(), buffer.size_bytes() / 2, ToBFloat16(1e6F));
  } else {  // as int8, elements of every sign and scales of 1e6
    std::fill_n(buffer.as<float>(), buffer.size_bytes() / 4, 1e6F);
  }
}

}  // namespace

AttentionHarness::AttentionHarness(const AttentionShape& shape, const std::vector<AttentionSequence>& sequences)
    : shape_(shape),
      sequences_(sequences),
      layout_{shape.num_kv_heads, shape.head_dim, shape.block_size, shape.kv_type},
      team_(shape.num_threads, PagedAttention::ScratchBytesFor(ConfigFor(shape, sequences))),
      blocks_per_seq_(CeilDiv(LongestSequence(sequences), shape.block_size)),
      attention_(ConfigFor(shape, sequences)) {
  const int64_t num_blocks = blocks_per_seq_ * static_cast<int64_t>(sequences.size());
  keys_ = Buffer(num_blocks * layout_.BytesPerBlock() / 2);
  values_ = Buffer(num_blocks * layout_.BytesPerBlock() / 2);
  FillWithLargeNumbers(keys_, shape.kv_type);
  FillWithLargeNumbers(values_, shape.kv_type);
  block_tables_.resize(num_blocks);
  std::iota(block_tables_.begin(), block_tables_.end(), 0);
  std::shuffle(block_tables_.begin(), block_tables_.end(), std::mt19937(3));
}

Matrix AttentionHarness::Step(const std::vector<int64_t>& begins, const std::vector<int64_t>& ends) {
  const KvLayerView cache = {layout_, keys_.data(), values_.data()};
  const int64_t q_size = shape_.num_heads * shape_.head_dim;
  std::vector<int64_t> query_start_loc = {0};
  std::vector<int64_t> seq_lens;
  std::vector<BlockId> tables;
  std::vector<float> queries;
  for (size_t seq = 0; seq < sequences_.size(); ++seq) {
    if (begins[seq] == ends[seq]) continue;
    const std::span<const BlockId> table(block_tables_.data() + seq * blocks_per_seq_, blocks_per_seq_);
    for (int64_t token = begins[seq]; token < ends[seq]; ++token) {
      const SlotId slot = table[token / layout_.block_size] * layout_.block_size + token % layout_.block_size;
      WriteKv(cache, slot, sequences_[seq].keys[token].data(), sequences_[seq].values[token].data());
      const std::vector<float>& query = sequences_[seq].queries[token];
      queries.insert(queries.end(), query.begin(), query.end());
    }
    query_start_loc.push_back(query_start_loc.back() + ends[seq] - begins[seq]);
    seq_lens.push_back(ends[seq]);
    tables.insert(tables.end(), table.begin(), table.end());
  }
  attention_.SetBatch({query_start_loc, seq_lens, tables.data(), blocks_per_seq_});
  const int64_t num_tokens = query_start_loc.back();
  const Activation out(num_tokens, q_size, InputForms{});
  team_.Run([&](Worker& worker) {
    attention_.Forward(worker, cache, MatrixView<const float>(queries.data(), num_tokens, q_size), out);
  });
  Matrix rows;
  for (int64_t token = 0; token < num_tokens; ++token) {
    const auto row = out.f32(num_tokens).row(token);
    rows.emplace_back(row.begin(), row.end());
  }
  return rows;
}

Matrix AttentionHarness::Whole() {
  std::vector<int64_t> ends;
  for (const AttentionSequence& sequence : sequences_) ends.push_back(static_cast<int64_t>(sequence.keys.size()));
  return Step(std::vector<int64_t>(ends.size(), 0), ends);
}

Matrix ReferenceAttention(const AttentionShape& shape, const AttentionSequence& sequence) {
  const int64_t group = shape.num_heads / shape.num_kv_heads;
  Matrix out;
  for (size_t t = 0; t < sequence.queries.size(); ++t) {
    std::vector<float> row(shape.num_heads * shape.head_dim);
    for (int64_t head = 0; head < shape.num_heads; ++head) {
      const int64_t kv_offset = head / group * shape.head_dim;
      std::vector<double> weights(t + 1);
      for (size_t j = 0; j <= t; ++j) {
        for (int64_t d = 0; d < shape.head_dim; ++d) {
          weights[j] += static_cast<double>(sequence.queries[t][head * shape.head_dim + d]) *
                        sequence.keys[j][kv_offset + d] * shape.score_scale;
        }
      }
      const double max = *std::max_element(weights.begin(), weights.end());
      double sum = 0;
      for (double& weight : weights) sum += weight = std::exp(weight - max);
      for (int64_t d = 0; d < shape.head_dim; ++d) {
        double value = 0;
        for (size_t j = 0; j <= t; ++j) value += weights[j] / sum * sequence.values[j][kv_offset + d];
        row[head * shape.head_dim + d] = static_cast<float>(value);
      }
    }
    out.push_back(std::move(row));
  }
  return out;
}

AttentionSequence RandomSequence(const AttentionShape& shape, int64_t num_tokens, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  const auto matrix = [&](int64_t cols) {
    Matrix rows(num_tokens, std::vector<float>(cols));
    for (auto& row : rows) {
      for (float& value : row) value = normal(random);
    }
    return rows;
  };
  const int64_t kv_size = shape.num_kv_heads * shape.head_dim;
  return {matrix(shape.num_heads * shape.head_dim), matrix(kv_size), matrix(kv_size)};
}

double LargestDifference(const Matrix& a, const Matrix& b) {
  REQUIRE(a.size() == b.size());
  double largest = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].size() == b[i].size());
    for (size_t j = 0; j < a[i].size(); ++j) {
      const double difference = std::abs(static_cast<double>(a[i][j]) - b[i][j]);
      if (!(difference <= largest)) largest = difference;  // a NaN shows
    }
  }
  return largest;
}

}  // namespace quire::testing
