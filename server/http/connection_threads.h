#pragma once

#include <httplib.h>

#include <condition_variable>
#include <cstddef>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <vector>

namespace quire {

// The threads of HTTP connections, one for each that is open: they are started when they are first needed, and stay.
class ConnectionThreads : public httplib::TaskQueue {
 public:
  // Jobs past `max_threads` wait, at most `max_waiting` of them.
  ConnectionThreads(size_t max_threads, size_t max_waiting) : max_threads_(max_threads), max_waiting_(max_waiting) {}

  // False, and the job is dropped, if there is no room for it.
  bool enqueue(std::function<void()> job) override;
  // Returns when all jobs are done.
  void shutdown() override;

 private:
  void Run();

  const size_t max_threads_;
  const size_t max_waiting_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  std::vector<std::thread> threads_;
  std::deque<std::function<void()>> jobs_;
  size_t num_idle_ = 0;
  bool stopping_ = false;
};

}  // namespace quire
