#include "engine/scheduler/waiting_queue.h"

#include "engine/base/check.h"

namespace quire {

void WaitingQueue::Push(Request* request) {
  QUIRE_CHECK(tenants_[request->tenant][request->priority].emplace(request->id, request).second);
  ++num_requests_;
  num_tokens_ += request->num_tokens();
}

void WaitingQueue::Remove(Request* request) {
  const auto lines = tenants_.find(request->tenant);
  QUIRE_CHECK(lines != tenants_.end());
  const auto line = lines->second.find(request->priority);
  QUIRE_CHECK(line != lines->second.end());
  QUIRE_CHECK_EQ(line->second.erase(request->id), size_t{1});
  if (line->second.empty()) lines->second.erase(line);
  if (lines->second.empty()) tenants_.erase(lines);
  --num_requests_;
  num_tokens_ -= request->num_tokens();
}

Request* WaitingQueue::Next(TimePoint now, double aging_seconds, const TenantLedger& ledger,
                            const std::function<bool(const Request&)>& may_start) const {
  Request* next = nullptr;
  Precedence best;
  for (const auto& [tenant, lines] : tenants_) {
    const double virtual_tokens = ledger.virtual_tokens(tenant);
    for (const auto& [priority, line] : lines) {
      Request* first = line.begin()->second;
      const Precedence precedence = {.virtual_tokens = virtual_tokens,
                                     .priority = AgedPriority(priority, now - first->arrival_time, aging_seconds),
                                     .id = first->id};
      if ((next != nullptr && best < precedence) || !may_start(*first)) continue;
      next = first;
      best = precedence;
    }
  }
  return next;
}

void WaitingQueue::AppendTo(std::vector<const Request*>* requests) const {
  for (const auto& [tenant, lines] : tenants_) {
    for (const auto& [priority, line] : lines) {
      for (const auto& [id, request] : line) requests->push_back(request);
    }
  }
}

}  // namespace quire
