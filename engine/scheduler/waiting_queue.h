#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/scheduler/precedence.h"
#include "engine/scheduler/request.h"
#include "engine/scheduler/tenant_ledger.h"

namespace quire {

// Requests that wait, new or preempted. In order of arrival within a tenant and priority, so that only the first of
// each is a candidate: finding the next takes time in tenants and priorities, not in requests.
class WaitingQueue {
 public:
  void Push(Request* request);
  // The request must be in the queue.
  void Remove(Request* request);

  int64_t size() const { return num_requests_; }
  // Prompt and output so far of all of them.
  int64_t num_tokens() const { return num_tokens_; }

  // The first by Precedence among those that `may_start`; nullptr without any.
  Request* Next(TimePoint now, double aging_seconds, const TenantLedger& ledger,
                const std::function<bool(const Request&)>& may_start) const;

  // Appends all, in order of arrival within a tenant and priority.
  void AppendTo(std::vector<const Request*>* requests) const;

 private:
  using Line = std::map<RequestId, Request*>;  // ids are given in order of arrival
  using Lines = std::map<int32_t, Line>;       // by priority; none empty

  std::map<std::string, Lines> tenants_;  // none empty
  int64_t num_requests_ = 0;
  int64_t num_tokens_ = 0;
};

}  // namespace quire
