#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "engine/runtime/forward_batch_builder.h"
#include "engine/runtime/model_runner.h"

namespace quire::testing {

// A model whose logits are a hash of all tokens up to a position. It keeps its tokens as a real model keeps keys and
// values: in the slots that the plan names, read back through the block table. So a wrong slot, table, position or
// token range, or a block that two requests write, changes every token that follows.
class FakeModelRunner : public ModelRunner {
 public:
  struct Config {
    int64_t vocab_size = 97;
    int64_t num_blocks = 64;
    int64_t block_size = 4;
    int64_t num_threads = 1;
  };
  // A call as it came, for assertions about order and amount.
  struct CallRecord {
    struct Entry {
      RequestId request_id{};
      int64_t first_position = 0;
      int64_t num_tokens = 0;
      bool samples_token = false;
    };
    std::vector<Entry> entries;
    int64_t num_tokens = 0;
    int64_t num_logits_rows = 0;
  };

  explicit FakeModelRunner(const Config& config);

  int64_t vocab_size() const override { return config_.vocab_size; }
  absl::StatusOr<MatrixView<float>> Execute(const StepPlan& plan) override;
  int64_t num_threads() const override { return config_.num_threads; }
  // On threads of its own, each with every num_threads-th item, the last ones first.
  void ForEach(int64_t count, int64_t max_threads, absl::FunctionRef<void(int64_t, int64_t)> body) override;

  // What the model says after `history`, from first principles: no cache, no batch.
  static void ComputeLogits(std::span<const TokenId> history, std::span<float> logits);
  // The greedy continuation of `prompt`, from the same.
  static std::vector<TokenId> GreedyContinuation(std::vector<TokenId> prompt, int64_t num_tokens, int64_t vocab_size);

  // The call with this number, from 0, fails, having computed nothing.
  void FailAtCall(int64_t call) { failing_call_ = call; }
  // Rows of sequences that begin with this token hold NaN, from this position on.
  void BreakSequences(TokenId first_token, int64_t from_position);
  // Runs at the beginning of every call: lets a test hold the engine inside a step.
  void SetOnExecute(std::function<void()> on_execute) { on_execute_ = std::move(on_execute); }
  void SetRecording(bool recording) { recording_ = recording; }

  int64_t num_calls() const { return num_calls_; }
  const std::vector<CallRecord>& calls() const { return calls_; }
  // Slots read back that held another position than asked for: never more than 0 in a correct engine.
  int64_t num_wrong_reads() const { return num_wrong_reads_; }

 private:
  struct Slot {
    TokenId token_id = -1;
    int64_t position = -1;
  };

  void Record(const StepPlan& plan);
  void CopyBlocks(const ForwardBatch& batch);
  void WriteTokens(const ForwardBatch& batch);
  void ReadHistory(const ForwardBatch& batch, int64_t seq, int64_t num_tokens);

  Config config_;
  ForwardBatchBuilder batch_builder_;
  std::vector<Slot> slots_;       // [num_blocks * block_size]
  std::vector<TokenId> history_;  // of the row being computed
  std::vector<float> logits_;     // [num_logits_rows, vocab_size]

  std::optional<int64_t> failing_call_;
  TokenId broken_first_token_ = -1;
  int64_t broken_from_position_ = 0;
  std::function<void()> on_execute_;
  bool recording_ = true;
  int64_t num_calls_ = 0;
  std::vector<CallRecord> calls_;
  int64_t num_wrong_reads_ = 0;
};

}  // namespace quire::testing
