#include "server/process_signals.h"

namespace quire {

ProcessSignals::ProcessSignals() {
  sigemptyset(&termination_);
  sigaddset(&termination_, SIGTERM);
  sigaddset(&termination_, SIGINT);
  all_ = termination_;
  sigaddset(&all_, SIGHUP);
  pthread_sigmask(SIG_BLOCK, &all_, nullptr);
}

int ProcessSignals::Wait() {
  int signal = 0;
  sigwait(&all_, &signal);
  return signal;
}

void ProcessSignals::RestoreDefault() { pthread_sigmask(SIG_UNBLOCK, &termination_, nullptr); }

}  // namespace quire
