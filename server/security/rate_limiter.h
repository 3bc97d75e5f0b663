#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include "absl/status/status.h"
#include "engine/base/clock.h"

namespace quire {

// What a tenant may ask for in a minute; unset: as much as it likes.
struct RateLimits {
  std::optional<int64_t> requests_per_minute;
  std::optional<int64_t> tokens_per_minute;  // of prompts, and of answers as they come
};

// By tenant name; "*" stands for all that are not named, and may be missing.
using RateLimitsByTenant = std::map<std::string, RateLimits>;

// Tells a tenant's requests that are within its rate from those beyond it. A tenant that was quiet for a minute may use
// all of a minute's at once. Tokens are counted when they are known, so that a request may pass the limit, and the next
// ones wait the longer for it. Thread-safe.
class RateLimiter {
 public:
  // `clock` must outlive the limiter.
  RateLimiter(RateLimitsByTenant limits, const Clock* clock);

  // Counts requests that go together. RESOURCE_EXHAUSTED (RATE_LIMITED) with the delay after which there is room for
  // all, or INVALID_ARGUMENT for more than there ever is: then nothing is counted.
  absl::Status Admit(const std::string& tenant, int64_t num_requests = 1);
  void CountTokens(const std::string& tenant, int64_t num_tokens);

  // From now on. Of a minute's new allowance a tenant has left the share that it had of the old one.
  void SetLimits(RateLimitsByTenant limits);

 private:
  // What is left of a limit: filled at its rate, up to a minute's worth; below 0 after more was used than was there.
  class Allowance {
   public:
    Allowance(std::optional<int64_t> per_minute, TimePoint now);
    void Refill(TimePoint now);
    // Keeps the share that is left; full if there was no limit.
    void SetLimit(std::optional<int64_t> per_minute, TimePoint now);
    void Use(double amount) { left_ -= amount; }
    // Until `amount` is there.
    Duration Until(double amount) const;
    bool is_full() const { return !per_minute_ || left_ >= *per_minute_; }

   private:
    std::optional<double> per_minute_;
    double left_;
    TimePoint refilled_;
  };
  struct Tenant {
    Allowance requests;
    Allowance tokens;
  };

  // With mutex_ held: null if there are none.
  const RateLimits* LimitsOf(const std::string& tenant) const;
  // With mutex_ held: the tenant's, refilled; null if it has no limit.
  Tenant* Find(const std::string& tenant);
  void ForgetQuietTenants(TimePoint now);

  const Clock* const clock_;
  std::mutex mutex_;
  RateLimitsByTenant limits_;                        // guarded by mutex_
  std::unordered_map<std::string, Tenant> tenants_;  // guarded by mutex_; those that have used something lately
};

}  // namespace quire
