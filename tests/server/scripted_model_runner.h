#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <vector>

#include "engine/runtime/model_runner.h"

namespace quire::testing {

// A model that says the same to everything: output token i of every request is script[i], and after the script it
// begins again. So a test decides the text.
class ScriptedModelRunner : public ModelRunner {
 public:
  ScriptedModelRunner(std::vector<TokenId> script, int64_t vocab_size)
      : script_(std::move(script)), vocab_size_(vocab_size) {}

  int64_t vocab_size() const override { return vocab_size_; }
  absl::StatusOr<MatrixView<float>> Execute(const StepPlan& plan) override;

  // Runs at the beginning of every step, on the engine's thread. Set before the first request.
  void SetOnExecute(std::function<void()> on_execute) { on_execute_ = std::move(on_execute); }
  int64_t num_steps() const { return num_steps_; }

 private:
  const std::vector<TokenId> script_;
  const int64_t vocab_size_;
  std::function<void()> on_execute_;
  std::map<RequestId, int64_t> first_sampled_position_;
  std::vector<float> logits_;  // [num_logits_rows, vocab_size]
  std::atomic<int64_t> num_steps_ = 0;
};

}  // namespace quire::testing
