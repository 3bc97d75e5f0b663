#include "tests/support/fake_model_runner.h"

#include <algorithm>
#include <limits>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "engine/base/check.h"
#include "engine/sampling/rng.h"

namespace quire::testing {
namespace {

constexpr int64_t kMaxNumTokens = 4096;
constexpr int64_t kMaxNumSeqs = 256;

}  // namespace

FakeModelRunner::FakeModelRunner(const Config& config)
    : config_(config),
      batch_builder_({.block_size = config.block_size,
                      .max_num_batched_tokens = kMaxNumTokens,
                      .max_num_seqs = kMaxNumSeqs,
                      .max_blocks_per_seq = config.num_blocks,
                      .max_num_logits_rows = kMaxNumTokens}),
      slots_(config.num_blocks * config.block_size) {
  history_.reserve(slots_.size());
}

void FakeModelRunner::ForEach(int64_t count, int64_t max_threads, absl::FunctionRef<void(int64_t, int64_t)> body) {
  const int64_t num_used = std::min(max_threads, config_.num_threads);
  if (num_used == 1) return ModelRunner::ForEach(count, 1, body);
  std::vector<std::jthread> threads;
  for (int64_t thread = 0; thread < num_used; ++thread) {
    threads.emplace_back([=] {
      for (int64_t item = count - 1 - thread; item >= 0; item -= num_used) body(item, thread);
    });
  }
}

void FakeModelRunner::ComputeLogits(std::span<const TokenId> history, std::span<float> logits) {
  uint64_t hash = 0;
  for (const TokenId token : history) hash = RandomBits(hash, static_cast<uint64_t>(token));
  for (size_t i = 0; i < logits.size(); ++i) logits[i] = static_cast<float>(RandomUniform(hash, i) * 8.0);
}

std::vector<TokenId> FakeModelRunner::GreedyContinuation(std::vector<TokenId> prompt, int64_t num_tokens,
                                                         int64_t vocab_size) {
  const size_t num_prompt_tokens = prompt.size();
  std::vector<float> logits(vocab_size);
  for (int64_t i = 0; i < num_tokens; ++i) {
    ComputeLogits(prompt, logits);
    prompt.push_back(static_cast<TokenId>(std::ranges::max_element(logits) - logits.begin()));
  }
  return {prompt.begin() + static_cast<int64_t>(num_prompt_tokens), prompt.end()};
}

void FakeModelRunner::BreakSequences(TokenId first_token, int64_t from_position) {
  broken_first_token_ = first_token;
  broken_from_position_ = from_position;
}

absl::StatusOr<MatrixView<float>> FakeModelRunner::Execute(const StepPlan& plan) {
  if (on_execute_) on_execute_();
  const int64_t call = num_calls_++;
  if (recording_) Record(plan);
  if (failing_call_ == call) return absl::UnknownError("the fake model was told to fail");
  const ForwardBatch& batch = batch_builder_.Build(plan);
  CopyBlocks(batch);
  WriteTokens(batch);
  logits_.resize(batch.num_logits_rows() * config_.vocab_size);
  const MatrixView<float> logits(logits_.data(), batch.num_logits_rows(), config_.vocab_size);
  int64_t seq = 0;
  for (int64_t row = 0; row < batch.num_logits_rows(); ++row) {
    const int64_t token = batch.logits_indices[row];
    while (token >= batch.query_start_loc[seq + 1]) ++seq;
    ReadHistory(batch, seq, batch.positions[token] + 1);
    ComputeLogits(history_, logits.row(row));
    const bool is_broken = history_[0] == broken_first_token_ && batch.positions[token] >= broken_from_position_;
    if (is_broken) logits.row(row)[0] = std::numeric_limits<float>::quiet_NaN();
  }
  return logits;
}

void FakeModelRunner::Record(const StepPlan& plan) {
  CallRecord record;
  for (const ScheduledRequest& scheduled : plan.requests) {
    record.entries.push_back({.request_id = scheduled.request_id,
                              .first_position = scheduled.first_position,
                              .num_tokens = scheduled.num_scheduled_tokens(),
                              .samples_token = scheduled.samples_token});
  }
  record.num_tokens = plan.num_tokens;
  record.num_logits_rows = plan.num_logits_rows;
  calls_.push_back(std::move(record));
}

void FakeModelRunner::CopyBlocks(const ForwardBatch& batch) {
  for (const KvBlockCopy& copy : batch.block_copies) {
    std::copy_n(slots_.begin() + copy.from * config_.block_size, config_.block_size,
                slots_.begin() + copy.to * config_.block_size);
  }
}

void FakeModelRunner::WriteTokens(const ForwardBatch& batch) {
  for (int64_t i = 0; i < batch.num_tokens(); ++i) {
    slots_.at(batch.slot_mapping[i]) = {.token_id = batch.token_ids[i], .position = batch.positions[i]};
  }
}

void FakeModelRunner::ReadHistory(const ForwardBatch& batch, int64_t seq, int64_t num_tokens) {
  QUIRE_CHECK_LE(num_tokens, batch.seq_lens[seq]);
  history_.clear();
  for (int64_t position = 0; position < num_tokens; ++position) {
    const SlotId block = batch.block_table(seq)[position / config_.block_size];
    const Slot& slot = slots_.at(block * config_.block_size + position % config_.block_size);
    num_wrong_reads_ += slot.position == position ? 0 : 1;
    history_.push_back(slot.token_id);
  }
}

}  // namespace quire::testing
