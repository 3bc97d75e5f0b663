#include "engine/runtime/engine_plan.h"

#include <pthread.h>

#include <algorithm>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/math.h"
#include "engine/base/status.h"
#include "engine/kv_cache/kv_cache_manager.h"
#include "engine/model/kv_cache_storage.h"
#include "engine/runtime/batch_sampler.h"
#include "engine/runtime/process_memory.h"
#include "engine/sampling/sampler.h"

namespace quire {
namespace {

// Rows of logits that a step may want: every running request's, and no fewer than this for prompt log-probabilities.
constexpr int64_t kMinLogitsRows = 64;
// What a running request takes beside its tokens: its objects, its sampler's, its stream's buffers.
constexpr int64_t kRequestOverheadBytes = 64 << 10;
// The same of one that waits. 900 of them took 27 KiB each, more than half of it gRPC's own records, which are bounded
// and counted with its buffers.
constexpr int64_t kWaitingRequestBytes = 16 << 10;
// Code and libraries as far as they are used, 29 MiB, and stacks and heap of a server without a model.
constexpr int64_t kProcessBytes = int64_t{36} << 20;

DType KvTypeFor(std::string_view requested) {
  for (const DType type : {DType::kF32, DType::kInt8}) {
    if (requested == ToString(type)) return type;
  }
  return DType::kBF16;  // what "auto" means
}

// None: as the file has them.
std::optional<WeightType> RequestedWeightType(std::string_view word) {
  for (const WeightType type : {WeightType::kF32, WeightType::kBF16, WeightType::kInt8}) {
    if (word == ToString(type)) return type;
  }
  return std::nullopt;
}

ThreadChoice ThreadsFor(const EngineConfig& config, const SystemLimits& system) {
  if (!config.num_threads) return ChooseNumThreads(system);
  return {*config.num_threads, "asked for"};
}

void ChooseTypesAndLimits(const EngineConfig& config, const SystemLimits& system, EnginePlan* plan) {
  plan->kv_type = KvTypeFor(config.kv_cache_dtype);
  plan->threads = ThreadsFor(config, system);
  plan->decoder_limits = {.max_tokens = config.step_tokens_limit(),
                          .max_num_seqs = config.max_num_seqs,
                          .max_logits_rows = std::max(config.max_num_seqs, kMinLogitsRows),
                          .max_seq_len = config.max_model_len.value_or(plan->model.context_length),
                          .num_threads = plan->threads.num_threads,
                          .kv_layout = KvLayoutFor(plan->model, config.block_size, plan->kv_type)};
}

MemoryItems ItemsFor(const EngineConfig& config, const EnginePlan& plan, const SurroundingMemory& around) {
  constexpr auto kTokenBytes = static_cast<int64_t>(sizeof(TokenId));
  const DecoderLimits& limits = plan.decoder_limits;
  const int64_t vocab_size = plan.model.vocab_size;
  return {.weights_bytes = plan.weights.total_bytes(),
          .workspace_bytes = Workspace::BytesFor(plan.model, limits, plan.weights.forms()) +
                             ForwardBatchBuilder::BytesFor(plan.batch_limits()) +
                             BatchSampler::BytesFor(limits.num_threads, vocab_size),
          .text_layer_bytes = around.text_layer_bytes,
          .request_state_bytes = config.max_num_seqs * (limits.max_seq_len * kTokenBytes +
                                                        Sampler::StateBytesFor(vocab_size) + kRequestOverheadBytes),
          .queue_bytes = config.max_queued_requests * kWaitingRequestBytes + config.max_queued_tokens * kTokenBytes +
                         around.queued_text_bytes,
          .rpc_bytes = around.rpc_bytes,
          .process_bytes = kProcessBytes};
}

int64_t StackBytes() {
  pthread_attr_t attributes;
  size_t stack_bytes = 0;
  if (pthread_getattr_default_np(&attributes) != 0) return 0;
  pthread_attr_getstacksize(&attributes, &stack_bytes);
  pthread_attr_destroy(&attributes);
  return static_cast<int64_t>(stack_bytes);
}

// What RLIMIT_AS leaves for memory that is used: without what is mapped already, unless the sum counts it, and without
// what threads and the allocator map and never use.
int64_t UsableAddressSpace(int64_t limit_bytes, const SystemLimits& system, const EnginePlan& plan,
                           const SurroundingMemory& around) {
  const int64_t num_rpc_threads = 16 + 4 * system.num_affinity_cpus;
  const int64_t num_threads = plan.threads.num_threads + around.num_text_threads + num_rpc_threads;
  const int64_t usable_bytes = limit_bytes - ReadProcessMemory().mapped_bytes + kProcessBytes -
                               num_threads * StackBytes() - AllocatorAddressSpaceBytes();
  return std::max<int64_t>(0, usable_bytes);
}

MemoryLimits LimitsHere(const SystemLimits& system, const EnginePlan& plan, const SurroundingMemory& around) {
  MemoryLimits limits;
  limits.cgroup_bytes = system.cgroup_memory_limit_bytes;
  limits.available_bytes = system.available_memory_bytes + ReadProcessMemory().resident_bytes;
  if (system.address_space_limit_bytes) {
    limits.address_space_bytes = UsableAddressSpace(*system.address_space_limit_bytes, system, plan, around);
  }
  return limits;
}

MemoryInputs InputsFor(const EngineConfig& config, const EnginePlan& plan, const SurroundingMemory& around,
                       PlanPurpose purpose) {
  MemoryInputs inputs;
  inputs.items = ItemsFor(config, plan, around);
  inputs.bytes_per_block = KvCacheStorage::BytesPerBlock(plan.model.num_layers, plan.decoder_limits.kv_layout);
  inputs.index_bytes_per_block = KvCacheManager::BytesPerBlock(config.block_size, config.enable_prefix_caching);
  inputs.block_size = config.block_size;
  inputs.max_num_seqs = config.max_num_seqs;
  inputs.context_length = plan.model.context_length;
  inputs.max_model_len = config.max_model_len;
  inputs.memory_budget_bytes = config.memory_budget_bytes;
  inputs.kv_cache_memory_bytes = config.kv_cache_memory_bytes;
  const bool by_hand = config.memory_budget_bytes || config.kv_cache_memory_bytes;
  if (purpose == PlanPurpose::kStart || !by_hand) inputs.limits = plan.limits;
  return inputs;
}

}  // namespace

ForwardBatchLimits EnginePlan::batch_limits() const {
  return {.block_size = decoder_limits.kv_layout.block_size,
          .max_num_batched_tokens = decoder_limits.max_tokens,
          .max_num_seqs = decoder_limits.max_num_seqs,
          .max_blocks_per_seq = CeilDiv(decoder_limits.max_seq_len, decoder_limits.kv_layout.block_size),
          .max_num_logits_rows = decoder_limits.max_logits_rows};
}

absl::StatusOr<EnginePlan> PlanEngine(const Checkpoint& checkpoint, const EngineConfig& config,
                                      const SurroundingMemory& around, PlanPurpose purpose) {
  QUIRE_RETURN_IF_ERROR(config.Validate());
  EnginePlan plan;
  QUIRE_ASSIGN_OR_RETURN(plan.model, ReadModelConfig(checkpoint));
  const SystemLimits system = ReadSystemLimits();
  QUIRE_ASSIGN_OR_RETURN(plan.weights, PlanWeights(checkpoint, plan.model, RequestedWeightType(config.weight_type)));
  ChooseTypesAndLimits(config, system, &plan);
  plan.limits = LimitsHere(system, plan, around);
  QUIRE_ASSIGN_OR_RETURN(plan.memory, PlanMemory(InputsFor(config, plan, around, purpose)));
  return plan;
}

}  // namespace quire
