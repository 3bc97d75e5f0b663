#pragma once

#include <signal.h>

#include <atomic>
#include <thread>

#include "engine/base/clock.h"

namespace quire {

// SIGTERM and SIGINT, which end the server, and SIGHUP, which has it read files again, as something to wait for. Made
// in main before any thread, which inherit the blocked signals; no handler runs.
class ProcessSignals {
 public:
  ProcessSignals();

  // Returns the signal that came.
  int Wait();

  // Waits for SIGTERM or SIGINT, at most `timeout`; false if none came.
  bool WaitForTermination(Duration timeout) const;

  // From now on the next SIGTERM or SIGINT ends the process at once. On the thread that waited.
  void RestoreDefault();

 private:
  sigset_t termination_;
  sigset_t all_;
};

// While it lives, SIGTERM and SIGINT end the process at once, with code 0: for the time in which there is nothing yet
// to finish.
class TerminationAtOnce {
 public:
  explicit TerminationAtOnce(const ProcessSignals& signals);
  ~TerminationAtOnce();
  TerminationAtOnce(const TerminationAtOnce&) = delete;
  TerminationAtOnce& operator=(const TerminationAtOnce&) = delete;

 private:
  std::atomic<bool> stopping_ = false;
  std::thread thread_;
};

}  // namespace quire
