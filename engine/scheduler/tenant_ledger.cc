#include "engine/scheduler/tenant_ledger.h"

#include <algorithm>
#include <limits>

#include "engine/base/check.h"

namespace quire {

double TenantLedger::LeastVirtualTokens() const {
  double least = std::numeric_limits<double>::infinity();
  for (const auto& [tenant, account] : accounts_) {
    if (account.num_requests > 0) least = std::min(least, account.virtual_tokens);
  }
  return num_active_ > 0 ? least : 0;
}

void TenantLedger::Arrive(const std::string& tenant) {
  const auto found = accounts_.find(tenant);
  if (found != accounts_.end() && found->second.num_requests > 0) {
    ++found->second.num_requests;
    return;
  }
  const double least = LeastVirtualTokens();
  Account& account = found != accounts_.end() ? found->second : accounts_[tenant];
  account.limits = LimitsOf(tenant, limits_);
  account.virtual_tokens = std::max(account.virtual_tokens, least);
  account.num_requests = 1;
  ++num_active_;
  // Whoever is away below the least would be lifted to it anyway.
  std::erase_if(accounts_, [least](const auto& entry) {
    return entry.second.num_requests == 0 && entry.second.virtual_tokens <= least;
  });
}

void TenantLedger::Start(const std::string& tenant, int64_t num_blocks) {
  Account& account = accounts_.at(tenant);
  ++account.num_running;
  account.num_reserved_blocks += num_blocks;
}

void TenantLedger::Stop(const std::string& tenant, int64_t num_blocks) {
  Account& account = accounts_.at(tenant);
  --account.num_running;
  account.num_reserved_blocks -= num_blocks;
}

void TenantLedger::Leave(const std::string& tenant) {
  Account& account = accounts_.at(tenant);
  if (--account.num_requests > 0) return;
  QUIRE_CHECK_EQ(account.num_running, 0);
  // With nobody there, there is nothing to be fair about.
  if (--num_active_ == 0) accounts_.clear();
}

void TenantLedger::Serve(const std::string& tenant, double cost) {
  Account& account = accounts_.at(tenant);
  account.virtual_tokens += cost / account.limits.weight;
}

void TenantLedger::SetLimits(TenantLimitsByName limits) {
  limits_ = std::move(limits);
  for (auto& [tenant, account] : accounts_) account.limits = LimitsOf(tenant, limits_);
}

bool TenantLedger::MayStart(const std::string& tenant, int64_t num_blocks) const {
  const Account& account = accounts_.at(tenant);
  if (account.num_running == 0) return true;
  const TenantLimits& limits = account.limits;
  if (limits.max_running_requests && account.num_running >= *limits.max_running_requests) return false;
  return !limits.max_kv_blocks || account.num_reserved_blocks + num_blocks <= *limits.max_kv_blocks;
}

bool TenantLedger::MayDisplace(const std::string& tenant, const std::string& other) const {
  const Account& taking = accounts_.at(tenant);
  const Account& giving = accounts_.at(other);
  return 2 * static_cast<double>(taking.num_running + 1) / taking.limits.weight <=
         static_cast<double>(giving.num_running - 1) / giving.limits.weight;
}

double TenantLedger::virtual_tokens(const std::string& tenant) const {
  const auto found = accounts_.find(tenant);
  return found != accounts_.end() ? found->second.virtual_tokens : 0;
}

}  // namespace quire
