#include "server/messages/cache_translation.h"

#include <string>

#include "engine/base/histogram.h"
#include "engine/runtime/process_memory.h"

namespace quire {
namespace {

// Together the budget.
void AddMemory(const MemoryPlan& memory, v1::CacheStats* result) {
  result->set_budget_bytes(memory.budget_bytes);
  result->set_weights_bytes(memory.items.weights_bytes);
  result->set_workspace_bytes(memory.items.workspace_bytes);
  result->set_other_bytes(memory.other_bytes());
  result->set_pool_bytes(memory.pool_bytes);
  for (const MemoryLine& line : memory.Lines()) {
    v1::MemoryItem* item = result->add_memory_items();
    item->set_name(std::string(line.name));
    item->set_bytes(line.bytes);
  }
  const ProcessMemory process = ReadProcessMemory();
  result->set_process_resident_bytes(process.resident_bytes);
  result->set_process_peak_resident_bytes(process.peak_resident_bytes);
}

void SetHistogram(const Histogram& histogram, v1::Histogram* result) {
  result->mutable_bounds()->Assign(histogram.bounds().begin(), histogram.bounds().end());
  result->mutable_counts()->Assign(histogram.counts().begin(), histogram.counts().end());
  result->set_sum(histogram.sum());
  result->set_max(histogram.max());
}

void AddBlocks(const KvCacheUsage& cache, const MemoryPlan& memory, v1::CacheStats* result) {
  const int64_t bytes_per_block = memory.bytes_per_block;
  result->set_block_size_tokens(memory.block_size);
  result->set_bytes_per_block(bytes_per_block);
  result->set_blocks_total(cache.num_blocks);
  result->set_blocks_used(cache.num_used_blocks);
  result->set_blocks_free(cache.num_free_blocks);
  result->set_blocks_cached(cache.num_cached_blocks);
  result->set_blocks_peak_used(cache.peak_used_blocks);
  result->set_blocks_shared(cache.num_shared_blocks);
  result->set_used_bytes(cache.num_used_blocks * bytes_per_block);
  result->set_free_bytes(cache.num_free_blocks * bytes_per_block);
  result->set_cached_bytes(cache.num_cached_blocks * bytes_per_block);
  result->set_peak_used_bytes(cache.peak_used_blocks * bytes_per_block);
  result->set_shared_bytes(cache.num_shared_blocks * bytes_per_block);
  result->set_tokens_stored(cache.num_stored_tokens);
  const int64_t wasted_slots = cache.num_wasted_slots(memory.block_size);
  result->set_wasted_slots(wasted_slots);
  result->set_wasted_bytes(wasted_slots * (bytes_per_block / memory.block_size));
}

void AddPrefixCache(const KvCacheUsage& cache, v1::CacheStats* result) {
  result->set_prefix_query_tokens(cache.num_prefix_query_tokens);
  result->set_prefix_hit_tokens(cache.num_prefix_hit_tokens);
  if (cache.num_prefix_query_tokens > 0) {
    result->set_prefix_hit_ratio(static_cast<double>(cache.num_prefix_hit_tokens) /
                                 static_cast<double>(cache.num_prefix_query_tokens));
  }
  result->set_evictions(cache.num_evictions);
  SetHistogram(cache.cached_block_ages, result->mutable_cached_block_age_seconds());
}

void AddCounters(const EngineStats& stats, v1::CacheStats* result) {
  result->set_requests_running(stats.num_running);
  result->set_requests_waiting(stats.num_waiting);
  result->set_preemptions(stats.num_preemptions);
  result->set_recomputed_tokens(stats.num_recomputed_tokens);
  result->set_deferred_admissions(stats.num_deferred_admissions);
  result->set_queued_tokens(stats.num_queued_tokens);
  result->set_drained_tokens_per_second(stats.drained_tokens_per_second);
  result->set_max_num_step_tokens(stats.max_num_step_tokens);
  SetHistogram(stats.release_steps, result->mutable_release_steps());
  SetHistogram(stats.release_seconds, result->mutable_release_seconds());
  result->set_steps(stats.num_steps);
  result->set_failed_steps(stats.num_failed_steps);
  result->set_prompt_tokens_computed(stats.num_prompt_tokens);
  result->set_output_tokens(stats.num_output_tokens);
  result->set_requests_finished(stats.num_finished_requests);
  result->set_invariant_violations(stats.num_invariant_violations);
}

void AddSteps(const StepSummary& steps, v1::CacheStats* result) {
  SetHistogram(steps.seconds, result->mutable_step_seconds());
  SetHistogram(steps.tokens, result->mutable_step_tokens());
  v1::StepPartSeconds* parts = result->mutable_step_part_seconds();
  const auto& [schedule, execute, sample, emit] = steps.part_seconds;
  parts->set_schedule(schedule);
  parts->set_execute(execute);
  parts->set_sample(sample);
  parts->set_emit(emit);
}

void AddHoldings(const EngineStats& stats, int64_t bytes_per_block, v1::CacheStats* result) {
  for (const RequestStats& request : stats.requests) {
    v1::RequestCacheStats* row = result->add_requests();
    row->set_request_id(request.label);
    row->set_state(request.state);
    row->set_blocks(request.num_blocks);
    row->set_tokens(request.num_computed_tokens);
    row->set_bytes(request.num_blocks * bytes_per_block);
    row->set_total_tokens(request.num_tokens);
    row->set_tenant(request.tenant);
    row->set_priority(request.priority);
    row->set_cached_tokens(request.num_cached_tokens);
  }
  for (const TenantStats& tenant : stats.tenants) {
    v1::TenantCacheStats* row = result->add_tenants();
    row->set_tenant(tenant.tenant);
    row->set_weight(tenant.weight);
    row->set_requests_running(tenant.num_running);
    row->set_requests_waiting(tenant.num_waiting);
    row->set_blocks(tenant.num_blocks);
    row->set_bytes(tenant.num_blocks * bytes_per_block);
  }
}

}  // namespace

v1::CacheStats ToProto(const EngineStats& stats, const MemoryPlan& memory, const EngineInfo& info) {
  v1::CacheStats result;
  result.set_kv_cache_type(info.kv_cache_dtype);
  AddMemory(memory, &result);
  AddBlocks(stats.cache, memory, &result);
  AddPrefixCache(stats.cache, &result);
  AddCounters(stats, &result);
  AddSteps(stats.steps, &result);
  AddHoldings(stats, memory.bytes_per_block, &result);
  return result;
}

v1::CacheConfig ToProto(const EngineConfig& config, const MemoryPlan& memory, const EngineInfo& info) {
  v1::CacheConfig result;
  result.set_block_size_tokens(memory.block_size);
  result.set_bytes_per_block(memory.bytes_per_block);
  result.set_bytes_per_token(memory.bytes_per_block / memory.block_size);
  result.set_kv_cache_type(info.kv_cache_dtype);
  result.set_blocks_total(memory.num_blocks);
  result.set_pool_bytes(memory.pool_bytes);
  result.set_prefix_caching_enabled(config.enable_prefix_caching);
  result.set_prefix_hash(
      "64 bits over the hash of what precedes a full block, its tokens, and tenant and salt of the request; what is "
      "found is compared token by token before it is shared");
  result.set_eviction_policy(
      "the least recently used cached block first, and the end of a prefix before its beginning");
  result.set_watermark(
      "learned: an admission leaves at least 1 % of the blocks to running requests, more after each preemption (up to "
      "50 %), less again with each request that ends");
  result.set_max_model_len(info.max_model_len);
  result.set_max_num_seqs(config.max_num_seqs);
  result.set_max_num_batched_tokens(config.step_tokens_limit());
  result.set_max_num_batched_tokens_auto(!config.max_num_batched_tokens);
  result.set_target_step_ms(config.target_step_ms);
  result.set_max_queued_requests(config.max_queued_requests);
  result.set_max_queued_tokens(config.max_queued_tokens);
  result.set_refuse_late_requests(config.refuse_late_requests);
  result.set_priority_aging_seconds(config.priority_aging_seconds);
  result.set_num_layers(info.num_layers);
  result.set_num_kv_heads(info.num_kv_heads);
  result.set_head_dim(info.head_dim);
  return result;
}

}  // namespace quire
