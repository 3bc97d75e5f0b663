#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/clock.h"
#include "engine/checkpoint/checkpoint.h"
#include "engine/model/decoder_loader.h"
#include "engine/runtime/engine.h"
#include "engine/runtime/engine_config.h"
#include "engine/runtime/engine_loop.h"
#include "engine/runtime/engine_plan.h"
#include "engine/runtime/memory_budget.h"
#include "engine/runtime/model_runner.h"

namespace quire {

// What was built and what was chosen, for the start message and GetModelInfo.
struct EngineInfo {
  std::string architecture;
  int64_t num_parameters = 0;
  int64_t num_layers = 0;
  int64_t hidden_size = 0;
  int64_t intermediate_size = 0;
  int64_t num_heads = 0;
  int64_t num_kv_heads = 0;
  int64_t head_dim = 0;
  int64_t vocab_size = 0;
  int64_t context_length = 0;  // the model's own
  int64_t max_model_len = 0;   // accepted here
  std::string weight_type;
  std::string compute_type;
  std::string compute_type_reason;  // which kernels read which layers at how many rows, and why
  std::string kv_cache_dtype;
  int64_t num_threads = 0;
  std::string num_threads_reason;  // "2 physical cores; affinity allows 2, no cgroup quota"
};

struct BuiltEngine {
  EngineInfo info;
  MemoryPlan memory;
  std::unique_ptr<EngineLoop> loop;
};

// What a planned engine's decoder is made with. `config` must outlive it.
DecoderOptions DecoderOptionsFor(const EngineConfig& config, const EnginePlan& plan);

EngineInfo MakeEngineInfo(const EnginePlan& plan, const KernelChoice& kernels);

// An engine without its thread, over a runner of any kind. `end_of_generation_ids` and `clock` as BuildEngine's.
std::unique_ptr<Engine> MakeEngine(const EngineConfig& config, const EnginePlan& plan,
                                   std::unique_ptr<ModelRunner> runner, std::vector<TokenId> end_of_generation_ids,
                                   const Clock* clock);

// Loads the model and starts its engine, as planned. `end_of_generation_ids` are the tokens that end an answer. `clock`
// must outlive the engine. Errors as LoadDecoder's.
absl::StatusOr<BuiltEngine> BuildEngine(const Checkpoint& checkpoint, const EngineConfig& config,
                                        const EnginePlan& plan, std::vector<TokenId> end_of_generation_ids,
                                        const Clock* clock);

// The same for a process that holds nothing but the engine, and without ends of answers. Errors as PlanEngine's, too.
absl::StatusOr<BuiltEngine> BuildEngine(const Checkpoint& checkpoint, const EngineConfig& config, const Clock* clock);

}  // namespace quire
