#include "engine/scheduler/waiting_queue.h"

#include <algorithm>

#include "engine/base/check.h"

namespace quire {
namespace {

// The most urgent of the lines' first requests that may start; of equal ones the oldest.
template <typename Lines>
Request* FirstOf(const Lines& lines, TimePoint now, double aging_seconds,
                 const std::function<bool(const Request&)>& may_start) {
  Request* first = nullptr;
  std::pair<int64_t, RequestId> best;
  for (const auto& [priority, line] : lines) {
    Request* request = line.begin()->second;
    const std::pair urgency(AgedPriority(priority, now - request->arrival_time, aging_seconds), request->id);
    if ((first != nullptr && best < urgency) || !may_start(*request)) continue;
    first = request;
    best = urgency;
  }
  return first;
}

}  // namespace

void WaitingQueue::Push(Request* request) {
  const auto tenant = tenants_.try_emplace(request->tenant).first;
  QUIRE_CHECK(tenant->second.lines[request->priority].emplace(request->id, request).second);
  Reorder(tenant, tenant->second.turn.first);
  ++num_requests_;
  num_tokens_ += request->num_tokens();
}

void WaitingQueue::Remove(Request* request) {
  const auto tenant = tenants_.find(request->tenant);
  QUIRE_CHECK(tenant != tenants_.end());
  auto& lines = tenant->second.lines;
  const auto line = lines.find(request->priority);
  QUIRE_CHECK(line != lines.end());
  QUIRE_CHECK_EQ(line->second.erase(request->id), size_t{1});
  if (line->second.empty()) lines.erase(line);
  Reorder(tenant, tenant->second.turn.first);
  --num_requests_;
  num_tokens_ -= request->num_tokens();
}

void WaitingQueue::Reorder(Tenants::iterator tenant, double virtual_tokens) {
  auto& [lines, turn] = tenant->second;
  turns_.erase(turn);
  if (lines.empty()) {
    tenants_.erase(tenant);
    return;
  }
  const auto older = [](const auto& a, const auto& b) { return a.second.begin()->first < b.second.begin()->first; };
  const RequestId oldest = std::ranges::min_element(lines, older)->second.begin()->first;
  turn = {virtual_tokens, oldest};
  QUIRE_CHECK(turns_.emplace(turn, tenant).second);
}

Request* WaitingQueue::Next(TimePoint now, double aging_seconds, const TenantLedger& ledger,
                            const std::function<bool(const Request&)>& may_start) {
  for (auto turn = turns_.begin(); turn != turns_.end();) {
    const Tenants::iterator tenant = turn->second;
    const double virtual_tokens = ledger.virtual_tokens(tenant->first);
    if (virtual_tokens > turn->first.first) {
      // Its turn comes here, or later.
      const Turn stale = turn->first;
      Reorder(tenant, virtual_tokens);
      turn = turns_.upper_bound(stale);
      continue;
    }
    Request* request = FirstOf(tenant->second.lines, now, aging_seconds, may_start);
    if (request != nullptr) return request;
    ++turn;
  }
  return nullptr;
}

void WaitingQueue::AppendTo(std::vector<const Request*>* requests) const {
  for (const auto& [name, tenant] : tenants_) {
    for (const auto& [priority, line] : tenant.lines) {
      for (const auto& [id, request] : line) requests->push_back(request);
    }
  }
}

}  // namespace quire
