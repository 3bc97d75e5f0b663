#pragma once

namespace quire {

// For the beginning of a process. Debian builds abseil so that it looks for deadlocks at every lock of gRPC, and keeps
// half a kilobyte of each lock that it has seen: of some locks of calls for ever, beyond any budget of memory.
void TurnOffLockChecks();

}  // namespace quire
