#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>

namespace quire {

// "Stop what you are doing", from Ctrl-C to whoever works: calls subscribe, waits end early, and reads
// poll the descriptor. Thread-safe; not for signal handlers.
class CancelSignal {
 public:
  // While it lives, its action runs at each Cancel; after it ends, the action never runs again.
  class Subscription {
   public:
    Subscription(CancelSignal& signal, uint64_t id) : signal_(signal), id_(id) {}
    ~Subscription() { signal_.Unsubscribe(id_); }
    Subscription(const Subscription&) = delete;
    Subscription& operator=(const Subscription&) = delete;

   private:
    CancelSignal& signal_;
    uint64_t id_;
  };

  CancelSignal();
  ~CancelSignal();
  CancelSignal(const CancelSignal&) = delete;
  CancelSignal& operator=(const CancelSignal&) = delete;

  void Cancel();
  bool IsCancelled() const;

  // Makes the next piece of work cancellable anew.
  void Reset();

  // Runs `action` at Cancel, at once if that was before. It must not use this signal.
  [[nodiscard]] Subscription OnCancel(std::function<void()> action);

  // Waits for `delay` or Cancel; true if cancelled.
  bool WaitFor(std::chrono::milliseconds delay) const;

  // Readable while cancelled.
  int fd() const { return fd_; }

 private:
  void Unsubscribe(uint64_t id);

  const int fd_;
  mutable std::mutex mutex_;
  mutable std::condition_variable changed_;
  bool cancelled_ = false;
  uint64_t next_id_ = 0;
  std::map<uint64_t, std::function<void()>> actions_;
};

}  // namespace quire
