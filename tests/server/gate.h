#pragma once

#include <condition_variable>
#include <mutex>

namespace quire::testing {

// Holds threads that pass it while it is closed; tells when one is held. Opens for good.
class Gate {
 public:
  void Pass() {
    std::unique_lock lock(mutex_);
    if (open_) return;
    held_ = true;
    changed_.notify_all();
    changed_.wait(lock, [this] { return open_; });
  }
  void WaitUntilHeld() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return held_; });
  }
  void Open() {
    const std::lock_guard lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
  bool held_ = false;
};

}  // namespace quire::testing
