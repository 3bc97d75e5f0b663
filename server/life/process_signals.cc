#include "server/life/process_signals.h"

#include <chrono>
#include <cstdlib>

#include "engine/base/log.h"

namespace quire {
namespace {

constexpr std::chrono::milliseconds kLookInterval(50);

}  // namespace

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

bool ProcessSignals::WaitForTermination(Duration timeout) const {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(timeout);
  const timespec limit = {.tv_sec = seconds.count(), .tv_nsec = std::chrono::nanoseconds(timeout - seconds).count()};
  return sigtimedwait(&termination_, nullptr, &limit) > 0;
}

void ProcessSignals::RestoreDefault() { pthread_sigmask(SIG_UNBLOCK, &termination_, nullptr); }

TerminationAtOnce::TerminationAtOnce(const ProcessSignals& signals)
    : thread_([this, &signals] {
        while (!stopping_) {
          if (!signals.WaitForTermination(kLookInterval)) continue;
          log::Info("a signal, and nothing is served yet: stopped");
          log::Flush();
          std::_Exit(0);
        }
      }) {}

TerminationAtOnce::~TerminationAtOnce() {
  stopping_ = true;
  thread_.join();
}

}  // namespace quire
