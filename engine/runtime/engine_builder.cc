#include "engine/runtime/engine_builder.h"

#include <algorithm>
#include <random>
#include <utility>

#include "engine/base/log.h"
#include "engine/base/status.h"
#include "engine/runtime/cpu_model_runner.h"

namespace quire {
namespace {

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

SchedulerConfig SchedulerConfigFor(const EngineConfig& config, const EnginePlan& plan) {
  SchedulerConfig result = {.max_num_batched_tokens = config.step_tokens_limit(),
                            .max_num_seqs = config.max_num_seqs,
                            .max_model_len = plan.memory.max_model_len,
                            .bytes_per_block = plan.memory.bytes_per_block,
                            .target_step_seconds = std::nullopt,
                            .priority_aging_seconds = config.priority_aging_seconds,
                            .tenants = config.tenants,
                            .max_num_logits_rows = plan.decoder_limits.max_logits_rows};
  if (!config.max_num_batched_tokens) result.target_step_seconds = config.target_step_ms / 1000;
  return result;
}

}  // namespace

DecoderOptions DecoderOptionsFor(const EngineConfig& config, const EnginePlan& plan) {
  return {.limits = plan.decoder_limits,
          .compute_type = config.compute_type,
          .deterministic = config.deterministic,
          .kernel_times_file = config.kernel_times_file,
          .num_blocks = plan.memory.num_blocks};
}

EngineInfo MakeEngineInfo(const EnginePlan& plan, const KernelChoice& kernels) {
  const ModelConfig& model = plan.model;
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
          .max_model_len = plan.memory.max_model_len,
          .weight_type = plan.weights.DescribeTypes(),
          .compute_type = kernels.compute_type,
          .compute_type_reason = kernels.reason,
          .kv_cache_dtype = std::string(ToString(plan.kv_type)),
          .num_threads = plan.threads.num_threads,
          .num_threads_reason = plan.threads.reason};
}

std::unique_ptr<Engine> MakeEngine(const EngineConfig& config, const EnginePlan& plan,
                                   std::unique_ptr<ModelRunner> runner, std::vector<TokenId> end_of_generation_ids,
                                   const Clock* clock) {
  EngineDependencies dependencies;
  dependencies.clock = clock;
  dependencies.kv_cache =
      std::make_unique<KvCacheManager>(KvCacheConfig{.num_blocks = plan.memory.num_blocks,
                                                     .block_size = plan.memory.block_size,
                                                     .enable_prefix_caching = config.enable_prefix_caching},
                                       clock);
  dependencies.scheduler =
      std::make_unique<Scheduler>(SchedulerConfigFor(config, plan), dependencies.kv_cache.get(), clock);
  dependencies.model_runner = std::move(runner);
  dependencies.end_of_generation_ids = std::move(end_of_generation_ids);
  dependencies.seed = std::random_device()();
  return std::make_unique<Engine>(std::move(dependencies));
}

absl::StatusOr<BuiltEngine> BuildEngine(const Checkpoint& checkpoint, const EngineConfig& config,
                                        const EnginePlan& plan, std::vector<TokenId> end_of_generation_ids,
                                        const Clock* clock) {
  QUIRE_ASSIGN_OR_RETURN(LoadedDecoder loaded, LoadDecoder(checkpoint, plan.model, plan.weights,
                                                           DecoderOptionsFor(config, plan), ProgressLog()));
  BuiltEngine built;
  built.info = MakeEngineInfo(plan, loaded.kernels);
  built.memory = plan.memory;
  auto runner = std::make_unique<CpuModelRunner>(std::move(loaded.decoder), plan.batch_limits());
  const QueueLimits queue_limits = {.max_queued_requests = config.max_queued_requests,
                                    .max_queued_tokens = config.max_queued_tokens,
                                    .refuse_late_requests = config.refuse_late_requests};
  built.loop = std::make_unique<EngineLoop>(
      MakeEngine(config, plan, std::move(runner), std::move(end_of_generation_ids), clock), queue_limits);
  return built;
}

absl::StatusOr<BuiltEngine> BuildEngine(const Checkpoint& checkpoint, const EngineConfig& config, const Clock* clock) {
  QUIRE_ASSIGN_OR_RETURN(const EnginePlan plan, PlanEngine(checkpoint, config, {}, PlanPurpose::kStart));
  return BuildEngine(checkpoint, config, plan, {}, clock);
}

}  // namespace quire
