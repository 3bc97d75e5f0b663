#include "server/lock_checks.h"

#include "absl/synchronization/mutex.h"

namespace quire {

void TurnOffLockChecks() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

}  // namespace quire
