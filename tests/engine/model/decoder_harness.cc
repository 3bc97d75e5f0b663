#include "tests/engine/model/decoder_harness.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <numeric>
#include <random>
#include <utility>

#include "engine/base/math.h"
#include "engine/model/model_config.h"
#include "engine/model/weights.h"

namespace quire::testing {

DecoderHarness::DecoderHarness(const std::string& model_path, const HarnessOptions& options)
    : options_(options),
      blocks_per_seq_(CeilDiv(options.max_seq_len, options.block_size)),
      seq_lens_(options.max_num_seqs, 0) {
  auto checkpoint = OpenCheckpoint(model_path);
  INFO(checkpoint.status().ToString());
  REQUIRE(checkpoint.ok());
  auto config = ReadModelConfig(**checkpoint);
  INFO(config.status().ToString());
  REQUIRE(config.ok());
  config_ = *config;

  const DecoderLimits limits = {.max_tokens = options.max_tokens,
                                .max_num_seqs = options.max_num_seqs,
                                .max_logits_rows = options.max_logits_rows,
                                .max_seq_len = options.max_seq_len,
                                .num_threads = options.num_threads,
                                .kv_layout = KvLayoutFor(config_, options.block_size, options.kv_type)};
  auto plan = PlanWeights(**checkpoint, config_, options.weight_type);
  INFO(plan.status().ToString());
  REQUIRE(plan.ok());
  auto team = std::make_unique<ThreadTeam>(options.num_threads, Workspace::ScratchBytesFor(config_, limits));
  auto weights = LoadWeights(**checkpoint, config_, *plan, *team, [](int64_t, int64_t) {});
  INFO(weights.status().ToString());
  REQUIRE(weights.ok());
  const int64_t num_blocks = options.max_num_seqs * blocks_per_seq_;
  decoder_ =
      std::make_unique<Decoder>(config_, *std::move(weights), limits, plan->forms(), num_blocks, std::move(team));
  KernelTimes times;
  REQUIRE(decoder_->ChooseKernels(options.compute_type, /*deterministic=*/false, times).ok());

  std::vector<BlockId> blocks(num_blocks);
  std::iota(blocks.begin(), blocks.end(), 0);
  std::shuffle(blocks.begin(), blocks.end(), std::mt19937(7));
  for (int64_t seq = 0; seq < options.max_num_seqs; ++seq) {
    block_tables_.emplace_back(blocks.begin() + seq * blocks_per_seq_, blocks.begin() + (seq + 1) * blocks_per_seq_);
  }
}

ForwardBatch DecoderHarness::MakeBatch(const std::vector<SequenceChunk>& chunks) {
  ForwardBatch batch;
  batch.max_blocks_per_seq = blocks_per_seq_;
  batch.query_start_loc.push_back(0);
  for (const SequenceChunk& chunk : chunks) {
    const std::vector<BlockId>& table = block_tables_[chunk.seq];
    for (const TokenId token : chunk.tokens) {
      const int64_t position = seq_lens_[chunk.seq]++;
      batch.logits_indices.push_back(batch.num_tokens());
      batch.token_ids.push_back(token);
      batch.positions.push_back(position);
      batch.slot_mapping.push_back(table[position / options_.block_size] * options_.block_size +
                                   position % options_.block_size);
    }
    batch.query_start_loc.push_back(batch.num_tokens());
    batch.seq_lens.push_back(seq_lens_[chunk.seq]);
    batch.block_tables.insert(batch.block_tables.end(), table.begin(), table.end());
  }
  return batch;
}

std::vector<std::vector<float>> DecoderHarness::Forward(const std::vector<SequenceChunk>& chunks) {
  const ForwardBatch batch = MakeBatch(chunks);
  const MatrixView<float> logits = decoder_->Forward(batch);
  std::vector<std::vector<float>> rows;
  for (int64_t row = 0; row < logits.rows; ++row) {
    rows.emplace_back(logits.row_data(row), logits.row_data(row) + logits.cols);
  }
  return rows;
}

}  // namespace quire::testing
