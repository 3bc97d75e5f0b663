#pragma once

#include <compare>
#include <cstdint>

#include "engine/base/clock.h"
#include "engine/base/ids.h"

namespace quire {

// Who goes first among requests that want tokens: the lesser one. Fairness among tenants comes before urgency, so that
// no tenant can claim another's share by calling everything urgent, or by waiting in masses; urgency before arrival.
struct Precedence {
  double virtual_tokens = 0;  // of the tenant
  int64_t priority = 0;       // with age counted in
  RequestId id{};

  auto operator<=>(const Precedence&) const = default;
};

// Every `aging_seconds` of waiting count as one level of priority, so that no request of a tenant waits for ever.
int64_t AgedPriority(int32_t priority, Duration waited, double aging_seconds);

// Who keeps its blocks when they run out: the lesser one. Fixed when a request is admitted, so that the first of all
// that run is never preempted. A tenant's n-th request at once comes after every other tenant's earlier ones (by
// weight): whoever runs most gives way first.
struct RunningRank {
  double num_before = 0;  // requests of the tenant that ran already and are as urgent at least, divided by its weight
  int64_t priority = 0;   // with the age at admission
  RequestId id{};

  auto operator<=>(const RunningRank&) const = default;
};

}  // namespace quire
