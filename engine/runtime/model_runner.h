#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/scheduler/step_plan.h"
#include "engine/tensor/tensor_view.h"

namespace quire {

// Computes a step. The engine's only way to the model, so that tests put a fake in its place.
class ModelRunner {
 public:
  virtual ~ModelRunner() = default;

  virtual int64_t vocab_size() const = 0;

  // Runs the plan: writes keys and values of its tokens into their slots and returns the wanted logits,
  // [plan.num_logits_rows, vocab_size], in plan order; valid until the next call. An error leaves the cache's
  // earlier slots as they were.
  virtual absl::StatusOr<MatrixView<float>> Execute(const StepPlan& plan) = 0;
};

}  // namespace quire
