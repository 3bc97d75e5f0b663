#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "engine/model/model_config.h"
#include "engine/model/weight_plan.h"
#include "engine/model/workspace.h"
#include "engine/runtime/engine_config.h"
#include "engine/runtime/forward_batch_builder.h"
#include "engine/runtime/memory_budget.h"
#include "engine/runtime/system_limits.h"
#include "engine/tensor/dtype.h"

namespace quire {

// What stands around the engine in its process, for the memory sum.
struct SurroundingMemory {
  int64_t text_layer_bytes = 0;   // vocabulary, and prompts while they are encoded
  int64_t queued_text_bytes = 0;  // prompts that wait to be encoded
  int64_t rpc_bytes = 0;          // buffers of connections
  int64_t num_text_threads = 0;
};

// All that is decided before anything is loaded. But for the number of threads and for what a machine or a container
// limits, it follows from file and flags.
struct EnginePlan {
  ModelConfig model;
  WeightPlan weights;
  DType kv_type = DType::kBF16;
  ThreadChoice threads;
  DecoderLimits decoder_limits;
  MemoryLimits limits;  // that hold here
  MemoryPlan memory;

  ForwardBatchLimits batch_limits() const;
};

// To start here, limits must be kept. To ask what a budget or a pool set by hand holds, wherever it will run, they need
// not: CheckBudgetWithinLimits(plan.memory.budget_bytes, plan.limits) tells whether it would start here.
enum class PlanPurpose { kStart, kAsk };

// Reads nothing but the file's header. Errors: INVALID_ARGUMENT (configuration or checkpoint; a budget that is too
// small, with the sum and what would suffice), UNIMPLEMENTED (an architecture or tensor type by name).
absl::StatusOr<EnginePlan> PlanEngine(const Checkpoint& checkpoint, const EngineConfig& config,
                                      const SurroundingMemory& around, PlanPurpose purpose);

}  // namespace quire
