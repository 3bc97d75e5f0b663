#pragma once

#include <signal.h>

namespace quire {

// SIGTERM and SIGINT, which end the server, and SIGHUP, which has it read files again, as something to wait for. Made
// in main before any thread, which inherit the blocked signals; no handler runs.
class ProcessSignals {
 public:
  ProcessSignals();

  // Returns the signal that came.
  int Wait();

  // From now on the next SIGTERM or SIGINT ends the process at once. On the thread that waited.
  void RestoreDefault();

 private:
  sigset_t termination_;
  sigset_t all_;
};

}  // namespace quire
