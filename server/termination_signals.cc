#include "server/termination_signals.h"

namespace quire {

TerminationSignals::TerminationSignals() {
  sigemptyset(&signals_);
  sigaddset(&signals_, SIGTERM);
  sigaddset(&signals_, SIGINT);
  pthread_sigmask(SIG_BLOCK, &signals_, nullptr);
}

int TerminationSignals::Wait() {
  int signal = 0;
  sigwait(&signals_, &signal);
  return signal;
}

void TerminationSignals::RestoreDefault() { pthread_sigmask(SIG_UNBLOCK, &signals_, nullptr); }

}  // namespace quire
