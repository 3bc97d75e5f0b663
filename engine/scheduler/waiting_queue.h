#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "engine/base/clock.h"
#include "engine/scheduler/precedence.h"
#include "engine/scheduler/request.h"
#include "engine/scheduler/tenant_ledger.h"

namespace quire {

// Requests that wait, new or preempted. The tenant that was served least is next, of equal ones the one whose oldest
// request came first; of its requests the most urgent, with age, and then the oldest. Finding it takes time in the
// logarithm of tenants and in a tenant's priorities, not in requests.
class WaitingQueue {
 public:
  void Push(Request* request);
  // The request must be in the queue.
  void Remove(Request* request);

  int64_t size() const { return num_requests_; }
  // Prompt and output so far of all of them.
  int64_t num_tokens() const { return num_tokens_; }

  // The next request that `may_start`; a tenant whose requests may not is passed over. nullptr without any.
  Request* Next(TimePoint now, double aging_seconds, const TenantLedger& ledger,
                const std::function<bool(const Request&)>& may_start);

  // Appends all, in order of arrival within a tenant and priority.
  void AppendTo(std::vector<const Request*>* requests) const;

 private:
  using Line = std::map<RequestId, Request*>;  // ids are given in order of arrival
  using Turn = std::pair<double, RequestId>;   // a tenant's virtual tokens, or less, and its oldest request

  struct Tenant {
    std::map<int32_t, Line> lines;  // by priority; none empty
    Turn turn;
  };
  using Tenants = std::map<std::string, Tenant>;

  // A tenant's turn after its requests, or its virtual tokens, have changed.
  void Reorder(Tenants::iterator tenant, double virtual_tokens);

  Tenants tenants_;  // none empty
  // Virtual tokens only grow while a tenant is there, so what stands here is never too much; Next sets it right where
  // it matters.
  std::map<Turn, Tenants::iterator> turns_;
  int64_t num_requests_ = 0;
  int64_t num_tokens_ = 0;
};

}  // namespace quire
