#pragma once

#include <chrono>
#include <condition_variable>
#include <functional>
#include <mutex>
#include <queue>
#include <thread>
#include <utility>
#include <vector>

namespace quire::testing {

// Runs functions at their time, on a thread of its own. What has not had its time when it is destroyed is not run.
class Timer {
 public:
  using Clock = std::chrono::steady_clock;

  Timer() : thread_([this] { Run(); }) {}
  ~Timer() {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
  }

  void After(std::chrono::duration<double> delay, std::function<void()> function) {
    const auto when = Clock::now() + std::chrono::duration_cast<Clock::duration>(delay);
    {
      const std::lock_guard lock(mutex_);
      entries_.push({when, std::move(function)});
    }
    changed_.notify_one();
  }

 private:
  struct Entry {
    Clock::time_point when;
    std::function<void()> function;
    bool operator<(const Entry& other) const { return when > other.when; }  // the earliest is the queue's top
  };

  void Run() {
    std::unique_lock lock(mutex_);
    while (!stopping_) {
      if (entries_.empty()) {
        changed_.wait(lock);
      } else if (entries_.top().when > Clock::now()) {
        changed_.wait_until(lock, Clock::time_point(entries_.top().when));
      } else {
        const std::function<void()> function = entries_.top().function;
        entries_.pop();
        lock.unlock();
        function();
        lock.lock();
      }
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::priority_queue<Entry> entries_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace quire::testing
