#include "engine/base/clock.h"

namespace quire {

TimePoint SteadyClock::Now() const { return std::chrono::steady_clock::now(); }

}  // namespace quire
