#pragma once

#include <cstdint>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "engine/scheduler/step_plan.h"
#include "engine/tensor/tensor_view.h"

namespace quire {

// Computes a step. The engine's only way to the model and its threads, so that tests put a fake in its place.
class ModelRunner {
 public:
  virtual ~ModelRunner() = default;

  virtual int64_t vocab_size() const = 0;

  // Runs the plan: writes keys and values of its tokens into their slots and returns the wanted logits,
  // [plan.num_logits_rows, vocab_size], in plan order; valid until the next call. An error leaves the cache's
  // earlier slots as they were.
  virtual absl::StatusOr<MatrixView<float>> Execute(const StepPlan& plan) = 0;

  // Threads that Execute works with.
  virtual int64_t num_threads() const { return 1; }

  // Calls body(item, thread) for the items [0, count), on at most `max_threads` of those threads at the same time,
  // numbered from 0; returns when all have been done. Not while Execute runs.
  virtual void ForEach(int64_t count, int64_t max_threads, absl::FunctionRef<void(int64_t, int64_t)> body) {
    static_cast<void>(max_threads);
    for (int64_t item = 0; item < count; ++item) body(item, 0);
  }
};

}  // namespace quire
