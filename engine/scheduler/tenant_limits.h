#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace quire {

// What a tenant is given beside the others.
struct TenantLimits {
  double weight = 1;                            // share of the tokens served while several tenants wait; > 0
  std::optional<int64_t> max_running_requests;  // at once, >= 1; unset: max_num_seqs
  std::optional<int64_t> max_kv_blocks;         // that its running requests may come to own, >= 1; unset: the pool
};

// By tenant name; "*" stands for all that are not named, and may be missing.
using TenantLimitsByName = std::map<std::string, TenantLimits>;

inline TenantLimits LimitsOf(const std::string& tenant, const TenantLimitsByName& limits) {
  auto found = limits.find(tenant);
  if (found == limits.end()) found = limits.find("*");
  return found != limits.end() ? found->second : TenantLimits{};
}

}  // namespace quire
