#pragma once

#include <cstdint>
#include <memory>

#include "engine/model/decoder.h"
#include "engine/runtime/forward_batch_builder.h"
#include "engine/runtime/model_runner.h"

namespace quire {

// Runs steps through a decoder on this machine's processor.
class CpuModelRunner : public ModelRunner {
 public:
  CpuModelRunner(std::unique_ptr<Decoder> decoder, const ForwardBatchLimits& limits);

  int64_t vocab_size() const override { return decoder_->config().vocab_size; }
  absl::StatusOr<MatrixView<float>> Execute(const StepPlan& plan) override;
  int64_t num_threads() const override { return decoder_->team().num_threads(); }
  void ForEach(int64_t count, int64_t max_threads, absl::FunctionRef<void(int64_t, int64_t)> body) override;

 private:
  std::unique_ptr<Decoder> decoder_;
  ForwardBatchBuilder builder_;
};

}  // namespace quire
