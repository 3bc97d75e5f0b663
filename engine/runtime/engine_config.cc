#include "engine/runtime/engine_config.h"

#include <initializer_list>
#include <string_view>

#include "engine/base/status.h"

namespace quire {
namespace {

absl::Status CheckRange(std::string_view field, int64_t value, int64_t min, int64_t max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return InvalidArgument(field, value, StrCat("an integer in [", min, ", ", max, "]"));
}

// Written so that NaN fails it.
absl::Status CheckNumber(std::string_view field, double value, double min, double max) {
  if (value >= min && value <= max) return absl::OkStatus();
  return InvalidArgument(field, value, StrCat("a number in [", min, ", ", max, "]"));
}

absl::Status CheckTenant(const std::string& name, const TenantLimits& limits) {
  QUIRE_RETURN_IF_ERROR(CheckNumber(StrCat(name, ".weight"), limits.weight, kMinTenantWeight, kMaxTenantWeight));
  QUIRE_RETURN_IF_ERROR(
      CheckRange(StrCat(name, ".max_running_requests"), limits.max_running_requests.value_or(1), 1, kMaxTenantCount));
  return CheckRange(StrCat(name, ".max_kv_blocks"), limits.max_kv_blocks.value_or(1), 1, kMaxTenantCount);
}

absl::Status CheckOneOf(std::string_view field, std::string_view value,
                        std::initializer_list<std::string_view> accepted) {
  std::string list;
  for (const std::string_view word : accepted) {
    if (word == value) return absl::OkStatus();
    list += StrCat(list.empty() ? "one of " : ", ", word);
  }
  return InvalidArgument(field, StrCat("'", value, "'"), list);
}

}  // namespace

absl::Status ValidateTenants(const TenantLimitsByName& tenants) {
  for (const auto& [name, limits] : tenants) QUIRE_RETURN_IF_ERROR(CheckTenant(StrCat("tenants.", name), limits));
  return absl::OkStatus();
}

absl::Status EngineConfig::Validate() const {
  QUIRE_RETURN_IF_ERROR(CheckOneOf("weight_type", weight_type, {"auto", "f32", "bf16", "int8"}));
  QUIRE_RETURN_IF_ERROR(CheckOneOf("compute_type", compute_type, {"auto", "f32", "bf16", "int8"}));
  QUIRE_RETURN_IF_ERROR(CheckOneOf("kv_cache_dtype", kv_cache_dtype, {"auto", "f32", "bf16", "int8"}));
  QUIRE_RETURN_IF_ERROR(CheckRange("max_model_len", max_model_len.value_or(2), 2, int64_t{1} << 24));
  QUIRE_RETURN_IF_ERROR(CheckRange("max_num_batched_tokens", step_tokens_limit(), 16, 65536));
  QUIRE_RETURN_IF_ERROR(CheckRange("max_num_seqs", max_num_seqs, 1, 4096));
  if (block_size != 16 && block_size != 32 && block_size != 64) {
    return InvalidArgument("block_size", block_size, "16, 32 or 64");
  }
  if (max_num_seqs > step_tokens_limit()) {
    return InvalidArgument("max_num_seqs", max_num_seqs,
                           StrCat("at most max_num_batched_tokens, ", step_tokens_limit(),
                                  ": each running request computes a token in every step"));
  }
  constexpr int64_t kMaxBytes = int64_t{1} << 50;
  QUIRE_RETURN_IF_ERROR(CheckRange("memory_budget", memory_budget_bytes.value_or(1), 1, kMaxBytes));
  QUIRE_RETURN_IF_ERROR(CheckRange("kv_cache_memory_bytes", kv_cache_memory_bytes.value_or(1), 1, kMaxBytes));
  QUIRE_RETURN_IF_ERROR(CheckRange("threads", num_threads.value_or(1), 1, 1024));
  QUIRE_RETURN_IF_ERROR(CheckRange("max_queued_requests", max_queued_requests, 1, 1000000));
  QUIRE_RETURN_IF_ERROR(CheckRange("max_queued_tokens", max_queued_tokens, 1, kMaxBytes));
  QUIRE_RETURN_IF_ERROR(CheckNumber("target_step_ms", target_step_ms, 1, 60000));
  QUIRE_RETURN_IF_ERROR(CheckNumber("priority_aging_seconds", priority_aging_seconds, 0.001, 86400));
  return ValidateTenants(tenants);
}

}  // namespace quire
