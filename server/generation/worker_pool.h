#pragma once

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace quire {

// A few threads that run jobs from one bounded queue, first come first served. Thread-safe.
class WorkerPool {
 public:
  // At least one thread; at most `max_queued_jobs` wait for TryPost.
  WorkerPool(int num_threads, size_t max_queued_jobs);
  // Runs what is queued, then joins.
  ~WorkerPool();

  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  // False when the queue is full.
  bool TryPost(std::function<void()> job);

  // Queues whatever the bound says: for jobs whose number is limited elsewhere.
  void Post(std::function<void()> job);

 private:
  void Run();

  const size_t max_queued_jobs_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> jobs_;  // guarded by mutex_
  bool stopping_ = false;                   // guarded by mutex_
  std::vector<std::thread> threads_;
};

}  // namespace quire
