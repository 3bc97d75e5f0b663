#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <utility>

#include "engine/scheduler/tenant_limits.h"

namespace quire {

// What each tenant has now and what it has been served, so that who waits next follows from both. Served tokens are
// counted as in "Fairness in Serving Large Language Models" (Sheng et al., 2024), algorithm VTC: each tenant's virtual
// counter grows by the cost of its tokens divided by its weight, and the lowest goes first. A tenant that comes back
// from having nothing is lifted to the least counter of those that are there, so that idleness saves up no share.
class TenantLedger {
 public:
  struct Account {
    TenantLimits limits;
    double virtual_tokens = 0;
    int64_t num_requests = 0;  // waiting or running
    int64_t num_running = 0;
    int64_t num_reserved_blocks = 0;  // that its running requests may come to own
  };

  // What a token costs: an output token takes a step of its own, as in the paper.
  static constexpr double kPromptTokenCost = 1;
  static constexpr double kOutputTokenCost = 2;

  explicit TenantLedger(TenantLimitsByName limits) : limits_(std::move(limits)) {}

  // A request's way: it arrives, starts and stops running any number of times, and leaves.
  void Arrive(const std::string& tenant);
  void Start(const std::string& tenant, int64_t num_blocks);
  void Stop(const std::string& tenant, int64_t num_blocks);
  void Leave(const std::string& tenant);

  void Serve(const std::string& tenant, double cost);

  // From now on; what was served before stays counted as it was.
  void SetLimits(TenantLimitsByName limits);

  // Whether the tenant's limits let a request start that may come to own `num_blocks`. One with nothing running may
  // always start one: limits that were lowered after its request was accepted must not let it wait for ever.
  bool MayStart(const std::string& tenant, int64_t num_blocks) const;

  // Whether `tenant` runs so much less than `other` that one of its requests may take the place of one of theirs:
  // afterwards it still runs at most half as many, by weight. So two tenants never take a place from each other in
  // turns, and near the balance it is left to who is next. (Without the half, three busy tenants of different weights
  // made each other compute 7 % of all tokens again, in the simulator.)
  bool MayDisplace(const std::string& tenant, const std::string& other) const;

  // 0 for one that is not there.
  double virtual_tokens(const std::string& tenant) const;

  // Of those with requests, and of some that had them lately.
  const std::unordered_map<std::string, Account>& accounts() const { return accounts_; }

 private:
  // The least counter of those with requests; 0 without any.
  double LeastVirtualTokens() const;

  TenantLimitsByName limits_;
  std::unordered_map<std::string, Account> accounts_;
  int64_t num_active_ = 0;  // accounts with requests
};

}  // namespace quire
