#include "engine/runtime/cpu_model_runner.h"

#include <utility>

namespace quire {

CpuModelRunner::CpuModelRunner(std::unique_ptr<Decoder> decoder, const ForwardBatchLimits& limits)
    : decoder_(std::move(decoder)), builder_(limits) {}

absl::StatusOr<MatrixView<float>> CpuModelRunner::Execute(const StepPlan& plan) {
  return decoder_->Forward(builder_.Build(plan));
}

void CpuModelRunner::ForEach(int64_t count, int64_t max_threads, absl::FunctionRef<void(int64_t, int64_t)> body) {
  decoder_->team().ForEach(count, max_threads, body);
}

}  // namespace quire
