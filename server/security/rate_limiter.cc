#include "server/security/rate_limiter.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/base/status.h"
#include "server/error_reason.h"

namespace quire {
namespace {

constexpr double kSecondsPerMinute = 60;
constexpr size_t kMaxRemembered = 4096;  // tenants, before those that used nothing lately are forgotten

absl::Status PastLimit(const std::string& what, int64_t per_minute, Duration delay) {
  return AsRateLimited(Overloaded(StrCat("the tenant's limit of ", per_minute, " ", what, " a minute is reached"),
                                  std::chrono::ceil<std::chrono::milliseconds>(delay)));
}

}  // namespace

RateLimiter::Allowance::Allowance(std::optional<int64_t> per_minute, TimePoint now)
    : per_minute_(per_minute), left_(static_cast<double>(per_minute.value_or(0))), refilled_(now) {}

void RateLimiter::Allowance::Refill(TimePoint now) {
  if (!per_minute_) return;
  left_ = std::min(*per_minute_, left_ + *per_minute_ / kSecondsPerMinute * ToSeconds(now - refilled_));
  refilled_ = now;
}

void RateLimiter::Allowance::SetLimit(std::optional<int64_t> per_minute, TimePoint now) {
  Refill(now);
  const double share = per_minute_ ? left_ / *per_minute_ : 1;
  *this = Allowance(per_minute, now);
  left_ *= share;
}

Duration RateLimiter::Allowance::Until(double amount) const {
  if (!per_minute_ || left_ >= amount) return Duration::zero();
  return ToDuration((amount - left_) * kSecondsPerMinute / *per_minute_);
}

RateLimiter::RateLimiter(RateLimitsByTenant limits, const Clock* clock) : clock_(clock), limits_(std::move(limits)) {}

absl::Status RateLimiter::Admit(const std::string& name, int64_t num_requests) {
  const std::lock_guard lock(mutex_);
  Tenant* const tenant = Find(name);
  if (tenant == nullptr) return absl::OkStatus();
  const RateLimits& limits = *LimitsOf(name);
  if (num_requests > limits.requests_per_minute.value_or(num_requests)) {
    return NeverFits("n", StrCat(num_requests, " answers are ", num_requests, " requests, and the tenant's limit is ",
                                 *limits.requests_per_minute, " a minute"));
  }
  const auto amount = static_cast<double>(num_requests);
  if (const Duration delay = tenant->requests.Until(amount); delay > Duration::zero()) {
    return PastLimit("requests", *limits.requests_per_minute, delay);
  }
  if (const Duration delay = tenant->tokens.Until(1); delay > Duration::zero()) {
    return PastLimit("tokens", *limits.tokens_per_minute, delay);
  }
  tenant->requests.Use(amount);
  return absl::OkStatus();
}

void RateLimiter::CountTokens(const std::string& name, int64_t num_tokens) {
  const std::lock_guard lock(mutex_);
  if (Tenant* const tenant = Find(name)) tenant->tokens.Use(static_cast<double>(num_tokens));
}

void RateLimiter::SetLimits(RateLimitsByTenant limits) {
  const std::lock_guard lock(mutex_);
  limits_ = std::move(limits);
  const TimePoint now = clock_->Now();
  std::erase_if(tenants_, [this, now](auto& entry) {
    auto& [name, tenant] = entry;
    const RateLimits* const new_limits = LimitsOf(name);
    if (new_limits == nullptr) return true;
    tenant.requests.SetLimit(new_limits->requests_per_minute, now);
    tenant.tokens.SetLimit(new_limits->tokens_per_minute, now);
    return false;
  });
}

const RateLimits* RateLimiter::LimitsOf(const std::string& name) const {
  auto limits = limits_.find(name);
  if (limits == limits_.end()) limits = limits_.find("*");
  return limits != limits_.end() ? &limits->second : nullptr;
}

RateLimiter::Tenant* RateLimiter::Find(const std::string& name) {
  const RateLimits* const limits = LimitsOf(name);
  if (limits == nullptr) return nullptr;
  const TimePoint now = clock_->Now();
  auto found = tenants_.find(name);
  if (found == tenants_.end()) {
    if (tenants_.size() >= kMaxRemembered) ForgetQuietTenants(now);
    const Tenant full = {.requests = {limits->requests_per_minute, now}, .tokens = {limits->tokens_per_minute, now}};
    found = tenants_.emplace(name, full).first;
  }
  found->second.requests.Refill(now);
  found->second.tokens.Refill(now);
  return &found->second;
}

// One that has all of its allowances is as one that was never there.
void RateLimiter::ForgetQuietTenants(TimePoint now) {
  std::erase_if(tenants_, [now](auto& entry) {
    Tenant& tenant = entry.second;
    tenant.requests.Refill(now);
    tenant.tokens.Refill(now);
    return tenant.requests.is_full() && tenant.tokens.is_full();
  });
}

}  // namespace quire
