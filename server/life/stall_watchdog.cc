#include "server/life/stall_watchdog.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "engine/base/log.h"

namespace quire {
namespace {

constexpr double kLooksPerStall = 10;
constexpr double kMaxIntervalSeconds = 1;

}  // namespace

StallWatchdog::StallWatchdog(const EngineLoop* engine, const Clock* clock, double stall_seconds,
                             std::function<void(bool)> on_change)
    : engine_(engine),
      clock_(clock),
      interval_(std::min(stall_seconds / kLooksPerStall, kMaxIntervalSeconds)),
      on_change_(std::move(on_change)),
      detector_(stall_seconds),
      thread_([this] { Run(); }) {}

StallWatchdog::~StallWatchdog() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void StallWatchdog::Run() {
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, interval_, [this] { return stopping_; })) {
    lock.unlock();
    Look();
    lock.lock();
  }
}

void StallWatchdog::Look() {
  const EngineProgress progress = engine_->progress();
  const bool stalled = detector_.Observe(progress, clock_->Now());
  if (stalled == stalled_) return;
  stalled_ = stalled;
  if (stalled) {
    log::Error(
        "the engine stalls: no step has ended for {:.1f} s, it stands in stage '{}' after step {}, {} requests "
        "are open; health says NOT_SERVING",
        detector_.seconds_without_progress(), std::string(ToString(progress.stage)), progress.num_steps,
        progress.num_open_requests);
  } else {
    log::Warning("the engine goes on after step {}; health says SERVING", progress.num_steps);
  }
  on_change_(stalled);
}

}  // namespace quire
