#include "server/http/connection_threads.h"

#include <utility>

namespace quire {

bool ConnectionThreads::enqueue(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    const bool needs_thread = jobs_.size() >= num_idle_ && threads_.size() < max_threads_;
    if (stopping_ || (!needs_thread && jobs_.size() >= num_idle_ + max_waiting_)) return false;
    jobs_.push_back(std::move(job));
    if (needs_thread) threads_.emplace_back([this] { Run(); });
  }
  wake_.notify_one();
  return true;
}

void ConnectionThreads::shutdown() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  // Nothing is enqueued any more, so the threads stay as they are.
  for (std::thread& thread : threads_) thread.join();
}

void ConnectionThreads::Run() {
  std::unique_lock lock(mutex_);
  while (true) {
    ++num_idle_;
    wake_.wait(lock, [this] { return stopping_ || !jobs_.empty(); });
    --num_idle_;
    if (jobs_.empty()) return;
    const std::function<void()> job = std::move(jobs_.front());
    jobs_.pop_front();
    lock.unlock();
    job();
    lock.lock();
  }
}

}  // namespace quire
