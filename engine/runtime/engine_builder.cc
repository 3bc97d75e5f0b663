#include "engine/runtime/engine_builder.h"

#include <algorithm>
#include <fstream>
#include <random>
#include <unistd.h>
#include <utility>

#include "engine/base/log.h"
#include "engine/base/math.h"
#include "engine/base/status.h"
#include "engine/model/decoder_loader.h"
#include "engine/model/weights.h"
#include "engine/runtime/cpu_model_runner.h"
#include "engine/runtime/system_limits.h"
#include "engine/sampling/sampler.h"

namespace quire {
namespace {

// Rows of logits that a step may want: every running request's, and no fewer than this for prompt log-probabilities.
constexpr int64_t kMinLogitsRows = 64;
// What a request takes beside its tokens: its objects, its sampler's, its stream's buffers.
constexpr int64_t kRequestOverheadBytes = 64 << 10;

// The choices that file and flags alone decide.
struct Choices {
  DType weight_type;
  DType kv_type;
  ThreadChoice threads;
  DecoderLimits decoder_limits;
};

DType ParseDType(const std::string& word) { return word == "f32" ? DType::kF32 : DType::kBF16; }

// How the file has most of its weights, as far as that can be kept: f32 stays, all else becomes bf16.
DType WeightTypeFor(const std::string& requested, const Checkpoint& checkpoint) {
  if (requested != "auto") return ParseDType(requested);
  const CheckpointTensor* largest = nullptr;
  for (const CheckpointTensor& tensor : checkpoint.tensors()) {
    if (largest == nullptr || tensor.num_elements() > largest->num_elements()) largest = &tensor;
  }
  return largest != nullptr && largest->type == StorageType::kF32 ? DType::kF32 : DType::kBF16;
}

ThreadChoice ThreadsFor(const EngineConfig& config, const SystemLimits& system) {
  if (!config.num_threads) return ChooseNumThreads(system);
  return {*config.num_threads, "asked for"};
}

Choices Choose(const EngineConfig& config, const ModelConfig& model, const Checkpoint& checkpoint,
               const SystemLimits& system) {
  Choices choices;
  choices.weight_type = WeightTypeFor(config.weight_type, checkpoint);
  choices.kv_type = ParseDType(config.kv_cache_dtype);
  choices.threads = ThreadsFor(config, system);
  choices.decoder_limits = {.max_tokens = config.step_tokens_limit(),
                            .max_num_seqs = config.max_num_seqs,
                            .max_logits_rows = std::max(config.max_num_seqs, kMinLogitsRows),
                            .max_seq_len = config.max_model_len.value_or(model.context_length),
                            .num_threads = choices.threads.num_threads,
                            .kv_layout = KvLayoutFor(model, config.block_size, choices.kv_type)};
  return choices;
}

int64_t ResidentBytes() {
  std::ifstream statm("/proc/self/statm");
  int64_t total_pages = 0;
  int64_t resident_pages = 0;
  statm >> total_pages >> resident_pages;
  return resident_pages * sysconf(_SC_PAGESIZE);
}

ForwardBatchLimits BatchLimits(const DecoderLimits& limits) {
  return {.block_size = limits.kv_layout.block_size,
          .max_num_batched_tokens = limits.max_tokens,
          .max_num_seqs = limits.max_num_seqs,
          .max_blocks_per_seq = CeilDiv(limits.max_seq_len, limits.kv_layout.block_size),
          .max_num_logits_rows = limits.max_logits_rows};
}

MemoryInputs MemoryInputsFor(const EngineConfig& config, const ModelConfig& model, const Choices& choices,
                             const SystemLimits& system, int64_t text_layer_bytes) {
  const DecoderLimits& limits = choices.decoder_limits;
  // The compute type is measured only after memory is planned, and must not change the sum: the larger one counts.
  const DType widest_compute = choices.weight_type;
  MemoryInputs inputs;
  inputs.weights_bytes = WeightsBytesFor(model, choices.weight_type);
  inputs.workspace_bytes = Workspace::BytesFor(model, limits, widest_compute) +
                           ForwardBatchBuilder::BytesFor(BatchLimits(limits)) +
                           SamplingScratch::BytesFor(model.vocab_size);
  inputs.text_layer_bytes = text_layer_bytes;
  inputs.request_state_bytes = config.max_num_seqs * (limits.max_seq_len * static_cast<int64_t>(sizeof(TokenId)) +
                                                      Sampler::StateBytesFor(model.vocab_size) + kRequestOverheadBytes);
  // The text layer stands already, and has a line of its own.
  inputs.process_bytes = std::max<int64_t>(0, ResidentBytes() - text_layer_bytes);
  inputs.bytes_per_block = KvCacheStorage::BytesPerBlock(model.num_layers, limits.kv_layout);
  inputs.block_size = config.block_size;
  inputs.max_num_seqs = config.max_num_seqs;
  inputs.context_length = model.context_length;
  inputs.max_model_len = config.max_model_len;
  inputs.memory_budget_bytes = config.memory_budget_bytes;
  inputs.kv_cache_memory_bytes = config.kv_cache_memory_bytes;
  inputs.cgroup_limit_bytes = system.cgroup_memory_limit_bytes;
  inputs.available_bytes = system.available_memory_bytes;
  return inputs;
}

// Logs every further tenth of the way.
class ProgressLog {
 public:
  void operator()(int64_t done_bytes, int64_t total_bytes) {
    const int64_t tenth = done_bytes * 10 / std::max<int64_t>(total_bytes, 1);
    if (tenth <= last_tenth_) return;
    last_tenth_ = tenth;
    log::Info("loading weights: {}% of {} MiB", tenth * 10, total_bytes >> 20);
  }

 private:
  int64_t last_tenth_ = 0;
};

EngineInfo MakeInfo(const ModelConfig& model, const Choices& choices, const ComputeTypeChoice& compute,
                    int64_t max_model_len) {
  return {.architecture = model.architecture,
          .num_parameters = model.num_parameters,
          .num_layers = model.num_layers,
          .hidden_size = model.hidden_size,
          .intermediate_size = model.intermediate_size,
          .num_heads = model.num_heads,
          .num_kv_heads = model.num_kv_heads,
          .head_dim = model.head_dim,
          .vocab_size = model.vocab_size,
          .context_length = model.context_length,
          .max_model_len = max_model_len,
          .weight_type = std::string(ToString(choices.weight_type)),
          .compute_type = std::string(ToString(compute.compute_type)),
          .compute_type_reason = compute.reason,
          .kv_cache_dtype = std::string(ToString(choices.kv_type)),
          .num_threads = choices.threads.num_threads,
          .num_threads_reason = choices.threads.reason};
}

SchedulerConfig SchedulerConfigFor(const EngineConfig& config, const Choices& choices, const MemoryPlan& memory) {
  SchedulerConfig result = {.max_num_batched_tokens = config.step_tokens_limit(),
                            .max_num_seqs = config.max_num_seqs,
                            .max_model_len = memory.max_model_len,
                            .bytes_per_block = memory.bytes_per_block,
                            .target_step_seconds = std::nullopt,
                            .priority_aging_seconds = config.priority_aging_seconds,
                            .tenants = config.tenants,
                            .max_num_logits_rows = choices.decoder_limits.max_logits_rows};
  if (!config.max_num_batched_tokens) result.target_step_seconds = config.target_step_ms / 1000;
  return result;
}

std::unique_ptr<EngineLoop> StartEngine(const EngineConfig& config, const Choices& choices, const MemoryPlan& memory,
                                        std::unique_ptr<ModelRunner> runner, std::vector<TokenId> end_of_generation_ids,
                                        const Clock* clock) {
  EngineDependencies dependencies;
  dependencies.clock = clock;
  dependencies.kv_cache =
      std::make_unique<KvCacheManager>(KvCacheConfig{.num_blocks = memory.num_blocks,
                                                     .block_size = memory.block_size,
                                                     .enable_prefix_caching = config.enable_prefix_caching},
                                       clock);
  dependencies.scheduler =
      std::make_unique<Scheduler>(SchedulerConfigFor(config, choices, memory), dependencies.kv_cache.get(), clock);
  dependencies.model_runner = std::move(runner);
  dependencies.end_of_generation_ids = std::move(end_of_generation_ids);
  dependencies.seed = std::random_device()();
  const QueueLimits queue_limits = {.max_queued_requests = config.max_queued_requests,
                                    .max_queued_tokens = config.max_queued_tokens,
                                    .refuse_late_requests = config.refuse_late_requests};
  return std::make_unique<EngineLoop>(std::make_unique<Engine>(std::move(dependencies)), queue_limits);
}

}  // namespace

absl::StatusOr<BuiltEngine> BuildEngine(const Checkpoint& checkpoint, const EngineConfig& config,
                                        int64_t text_layer_bytes, std::vector<TokenId> end_of_generation_ids,
                                        const Clock* clock) {
  QUIRE_RETURN_IF_ERROR(config.Validate());
  QUIRE_ASSIGN_OR_RETURN(const ModelConfig model, ReadModelConfig(checkpoint));
  const SystemLimits system = ReadSystemLimits();
  const Choices choices = Choose(config, model, checkpoint, system);
  BuiltEngine built;
  QUIRE_ASSIGN_OR_RETURN(built.memory, PlanMemory(MemoryInputsFor(config, model, choices, system, text_layer_bytes)));
  const DecoderOptions decoder_options = {.limits = choices.decoder_limits,
                                          .weight_type = choices.weight_type,
                                          .compute_type = config.compute_type,
                                          .num_blocks = built.memory.num_blocks};
  QUIRE_ASSIGN_OR_RETURN(LoadedDecoder loaded, LoadDecoder(checkpoint, model, decoder_options, ProgressLog()));
  built.info = MakeInfo(model, choices, loaded.compute, built.memory.max_model_len);
  auto runner = std::make_unique<CpuModelRunner>(std::move(loaded.decoder), BatchLimits(choices.decoder_limits));
  built.loop = StartEngine(config, choices, built.memory, std::move(runner), std::move(end_of_generation_ids), clock);
  return built;
}

}  // namespace quire
