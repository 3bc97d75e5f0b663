#include "engine/runtime/cpu_model_runner.h"

#include <utility>

namespace quire {

CpuModelRunner::CpuModelRunner(std::unique_ptr<Decoder> decoder, const ForwardBatchLimits& limits)
    : decoder_(std::move(decoder)), builder_(limits) {}

absl::StatusOr<MatrixView<float>> CpuModelRunner::Execute(const StepPlan& plan) {
  return decoder_->Forward(builder_.Build(plan));
}

}  // namespace quire
