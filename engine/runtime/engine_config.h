#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "engine/scheduler/tenant_limits.h"

namespace quire {

inline constexpr int64_t kAutoMaxNumBatchedTokens = 512;

inline constexpr double kMinTenantWeight = 0.001;
inline constexpr double kMaxTenantWeight = 1000;
inline constexpr int64_t kMaxTenantCount = int64_t{1} << 40;  // of requests and of blocks; at least 1

// INVALID_ARGUMENT names the tenant, its member, the value and the accepted range.
absl::Status ValidateTenants(const TenantLimitsByName& tenants);

// Everything the engine can be told, flat and defaulted. Names are those of flags and configuration keys.
// Unset optionals mean "auto": EngineInfo and MemoryPlan say what was chosen, nothing is adjusted in silence.
struct EngineConfig {
  std::string weight_type = "auto";     // "auto" (as the file has them), "f32", "bf16", "int8" (per output feature)
  std::string compute_type = "auto";    // "auto" (the fastest no less accurate than the weights), "f32", "bf16", "int8"
  std::string kernel_times_file;        // keeps measured kernel times between starts; empty: nothing does
  bool deterministic = false;           // the same answer alone and in any batch, in every type
  std::string kv_cache_dtype = "auto";  // "auto" (bf16), "f32", "bf16", "int8"
  std::optional<int64_t> max_model_len;  // tokens, >= 256 where the model has as many; unset: the largest that fits
  // Per step, in [16, 65536]; unset: at most kAutoMaxNumBatchedTokens, and as many of them as measured steps show to
  // take at most target_step_ms while requests decode.
  std::optional<int64_t> max_num_batched_tokens;
  double target_step_ms = 50;                    // in [1, 60000]; StepLength::kLeastTokens even so
  int64_t max_num_seqs = 64;                     // running at once, in [1, 4096]
  int64_t block_size = 16;                       // tokens of a KV block: 16, 32 or 64
  std::optional<int64_t> memory_budget_bytes;    // unset: from the cgroup, or what is needed
  std::optional<int64_t> kv_cache_memory_bytes;  // unset: what the budget leaves
  std::optional<int64_t> num_threads;            // unset: affinity, cgroup quota, physical cores
  bool enable_prefix_caching = true;
  int64_t max_queued_requests = 1024;   // waiting at once, in [1, 1000000]; an eighth is for newcomers
  int64_t max_queued_tokens = 1 << 20;  // of their prompts together, >= 1
  double priority_aging_seconds = 30;   // waiting this long counts as one level of priority; in (0, 86400]
  bool refuse_late_requests = false;    // at once, where the measured rate says that the deadline can't be met
  TenantLimitsByName tenants;

  int64_t step_tokens_limit() const { return max_num_batched_tokens.value_or(kAutoMaxNumBatchedTokens); }

  // INVALID_ARGUMENT names the field, the value and the accepted range.
  absl::Status Validate() const;
};

}  // namespace quire
