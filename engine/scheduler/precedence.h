#pragma once

#include <compare>
#include <cstdint>

#include "engine/base/clock.h"
#include "engine/base/ids.h"

namespace quire {

// Who goes first among requests that want tokens: the lesser one. Urgency before fairness before arrival.
struct Precedence {
  int64_t priority = 0;       // with age counted in
  double virtual_tokens = 0;  // of the tenant; 0 where tenants do not count
  RequestId id{};

  auto operator<=>(const Precedence&) const = default;
};

// Every `aging_seconds` of waiting count as one level of priority, so that nobody waits for ever.
int64_t AgedPriority(int32_t priority, Duration waited, double aging_seconds);

}  // namespace quire
