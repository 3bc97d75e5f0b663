#include "client/interrupt_watcher.h"

#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>

namespace quire {

InterruptWatcher::InterruptWatcher(CancelSignal& cancel) {
  sigset_t interrupt;
  sigemptyset(&interrupt);
  sigaddset(&interrupt, SIGINT);
  pthread_sigmask(SIG_BLOCK, &interrupt, nullptr);
  signal_fd_ = signalfd(-1, &interrupt, SFD_CLOEXEC);
  stop_fd_ = eventfd(0, EFD_CLOEXEC);
  thread_ = std::thread([this, &cancel] { Watch(cancel); });
}

InterruptWatcher::~InterruptWatcher() {
  eventfd_write(stop_fd_, 1);
  thread_.join();
  close(stop_fd_);
  close(signal_fd_);
}

void InterruptWatcher::Watch(CancelSignal& cancel) const {
  std::array<pollfd, 2> sources = {pollfd{signal_fd_, POLLIN, 0}, pollfd{stop_fd_, POLLIN, 0}};
  while (true) {
    if (poll(sources.data(), sources.size(), -1) < 0) {
      continue;
    }
    if (sources[1].revents != 0) {
      return;
    }
    signalfd_siginfo info;
    if (read(signal_fd_, &info, sizeof(info)) == sizeof(info)) {
      cancel.Cancel();
    }
  }
}

}  // namespace quire
