#pragma once

#include <condition_variable>
#include <functional>
#include <mutex>
#include <thread>

#include "engine/base/clock.h"
#include "engine/runtime/engine_loop.h"
#include "server/life/stall_detector.h"

namespace quire {

// A thread that looks at the engine's progress several times in every stall_seconds, and at least once a second. Logs
// where the engine hangs, and when it goes on.
class StallWatchdog {
 public:
  // `on_change` is called with true when the engine stalls and with false when steps end again, from the watchdog's
  // thread. `engine` and `clock` must outlive the watchdog. The time without progress is told by `clock`.
  StallWatchdog(const EngineLoop* engine, const Clock* clock, double stall_seconds,
                std::function<void(bool stalled)> on_change);
  ~StallWatchdog();
  StallWatchdog(const StallWatchdog&) = delete;
  StallWatchdog& operator=(const StallWatchdog&) = delete;

 private:
  void Run();
  void Look();

  const EngineLoop* const engine_;
  const Clock* const clock_;
  const std::chrono::duration<double> interval_;
  const std::function<void(bool)> on_change_;
  StallDetector detector_;  // the thread's
  bool stalled_ = false;    // the thread's
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;  // guarded by mutex_
  std::thread thread_;     // last
};

}  // namespace quire
