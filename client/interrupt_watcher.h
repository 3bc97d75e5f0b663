#pragma once

#include <thread>

#include "client/cancel_signal.h"

namespace quire {

// Turns SIGINT into CancelSignal::Cancel while it lives. A thread reads the signal, so that what follows
// a Ctrl-C is ordinary code. Made before any other thread: those made later inherit the blocked signal.
class InterruptWatcher {
 public:
  explicit InterruptWatcher(CancelSignal& cancel);
  ~InterruptWatcher();
  InterruptWatcher(const InterruptWatcher&) = delete;
  InterruptWatcher& operator=(const InterruptWatcher&) = delete;

 private:
  void Watch(CancelSignal& cancel) const;

  int signal_fd_;
  int stop_fd_;
  std::thread thread_;
};

}  // namespace quire
