#pragma once

#include <signal.h>

namespace quire {

// SIGTERM and SIGINT as something to wait for. Made in main before any thread, which inherit the blocked signals;
// no handler runs.
class TerminationSignals {
 public:
  TerminationSignals();

  // Returns the signal that came.
  int Wait();

  // From now on the next one ends the process at once. On the thread that waited.
  void RestoreDefault();

 private:
  sigset_t signals_;
};

}  // namespace quire
