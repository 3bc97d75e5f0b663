#include "engine/runtime/drain_rate.h"

#include <cmath>

namespace quire {

void DrainRate::Observe(TimePoint now, int64_t num_tokens, bool was_waiting) {
  const double seconds = ToSeconds(now - last_);
  last_ = now;
  // Nothing fades while nobody waits: what was measured is still the best that is known.
  if (!was_waiting) return;
  const double fade = std::exp(-seconds / kMemorySeconds);
  faded_tokens_ = faded_tokens_ * fade + static_cast<double>(num_tokens);
  faded_seconds_ = faded_seconds_ * fade + seconds;
}

double DrainRate::tokens_per_second() const {
  return faded_seconds_ > 0 && faded_tokens_ > 0 ? faded_tokens_ / faded_seconds_ : 0;
}

}  // namespace quire
