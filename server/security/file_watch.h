#pragma once

#include <functional>
#include <stop_token>
#include <thread>

namespace quire {

// A thread that looks at a file once a second, so that changes are seen while nobody calls.
class FileWatch {
 public:
  // `look` is called from the thread, until the watch is destroyed.
  explicit FileWatch(std::function<void()> look);

 private:
  void Run(const std::stop_token& stop) const;

  const std::function<void()> look_;
  const std::jthread thread_;  // last: stopped and joined first
};

}  // namespace quire
