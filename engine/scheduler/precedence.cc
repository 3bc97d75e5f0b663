#include "engine/scheduler/precedence.h"

#include <cmath>

namespace quire {

int64_t AgedPriority(int32_t priority, Duration waited, double aging_seconds) {
  return priority - static_cast<int64_t>(std::floor(ToSeconds(waited) / aging_seconds));
}

}  // namespace quire
