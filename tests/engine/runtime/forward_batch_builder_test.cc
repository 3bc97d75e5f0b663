#include "engine/runtime/forward_batch_builder.h"

#include <vector>

#include "catch2/catch_test_macros.hpp"

namespace quire {
namespace {

constexpr ForwardBatchLimits kLimits = {.block_size = 4,
                                        .max_num_batched_tokens = 16,
                                        .max_num_seqs = 4,
                                        .max_blocks_per_seq = 4,
                                        .max_num_logits_rows = 8};

ScheduledRequest Scheduled(const std::vector<TokenId>& tokens, int64_t first_position, int64_t first_row,
                           const std::vector<BlockId>& table) {
  ScheduledRequest scheduled{};
  scheduled.token_ids = tokens;
  scheduled.first_position = first_position;
  scheduled.first_logits_row = first_row;
  scheduled.end_logits_row = static_cast<int64_t>(tokens.size());
  scheduled.block_table = table;
  return scheduled;
}

StepPlan PlanOf(std::vector<ScheduledRequest> requests) {
  StepPlan plan;
  plan.requests = std::move(requests);
  for (const ScheduledRequest& scheduled : plan.requests) {
    plan.num_tokens += scheduled.num_scheduled_tokens();
    plan.num_logits_rows += scheduled.num_logits_rows();
  }
  return plan;
}

TEST_CASE("a decode and a chunk that crosses blocks become one ragged batch") {
  const std::vector<TokenId> decode = {50};
  const std::vector<TokenId> chunk = {10, 11, 12, 13};
  const std::vector<BlockId> decode_table = {7, 2, 5};
  const std::vector<BlockId> chunk_table = {3, 9};
  StepPlan plan = PlanOf({Scheduled(decode, 8, 0, decode_table), Scheduled(chunk, 2, 3, chunk_table)});
  plan.block_copies.push_back({1, 6});

  ForwardBatchBuilder builder(kLimits);
  const ForwardBatch& batch = builder.Build(plan);
  CHECK(batch.token_ids == std::vector<TokenId>{50, 10, 11, 12, 13});
  CHECK(batch.positions == std::vector<int64_t>{8, 2, 3, 4, 5});
  CHECK(batch.slot_mapping == std::vector<SlotId>{5 * 4 + 0, 3 * 4 + 2, 3 * 4 + 3, 9 * 4 + 0, 9 * 4 + 1});
  CHECK(batch.query_start_loc == std::vector<int64_t>{0, 1, 5});
  CHECK(batch.seq_lens == std::vector<int64_t>{9, 6});
  CHECK(batch.max_blocks_per_seq == 3);
  CHECK(std::vector<BlockId>(batch.block_table(0), batch.block_table(0) + 3) == decode_table);
  CHECK(std::vector<BlockId>(batch.block_table(1), batch.block_table(1) + 2) == chunk_table);
  CHECK(batch.logits_indices == std::vector<int64_t>{0, 4});
  REQUIRE(batch.block_copies.size() == 1);
  CHECK(batch.block_copies[0].from == 1);
  CHECK(batch.block_copies[0].to == 6);
}

TEST_CASE("a chunk may want no row, some, or all") {
  const std::vector<TokenId> tokens = {1, 2, 3};
  const std::vector<BlockId> table = {0};
  ForwardBatchBuilder builder(kLimits);
  CHECK(builder.Build(PlanOf({Scheduled(tokens, 0, 3, table)})).logits_indices.empty());
  CHECK(builder.Build(PlanOf({Scheduled(tokens, 0, 1, table)})).logits_indices == std::vector<int64_t>{1, 2});
  CHECK(builder.Build(PlanOf({Scheduled(tokens, 0, 3, table), Scheduled(tokens, 0, 0, table)})).logits_indices ==
        std::vector<int64_t>{3, 4, 5});
}

TEST_CASE("nothing of an earlier step remains, and its memory is used again") {
  const std::vector<TokenId> tokens = {1, 2, 3};
  const std::vector<BlockId> table = {2};
  ForwardBatchBuilder builder(kLimits);
  StepPlan plan = PlanOf({Scheduled(tokens, 0, 2, table), Scheduled(tokens, 1, 0, table)});
  plan.block_copies.push_back({0, 1});
  const ForwardBatch& batch = builder.Build(plan);
  const TokenId* memory = batch.token_ids.data();
  builder.Build(PlanOf({Scheduled(tokens, 0, 2, table)}));
  CHECK(batch.token_ids.data() == memory);
  CHECK(batch.num_tokens() == 3);
  CHECK(batch.num_seqs() == 1);
  CHECK(batch.query_start_loc == std::vector<int64_t>{0, 3});
  CHECK(batch.block_tables == table);
  CHECK(batch.block_copies.empty());
}

}  // namespace
}  // namespace quire
