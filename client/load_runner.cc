#include "client/load_runner.h"

#include <chrono>
#include <utility>

namespace quire {

LoadResult LoadRunner::Run(const std::vector<PlannedRequest>& plan, const LoadOptions& options, CancelSignal& cancel,
                           const std::function<void(int64_t, int64_t)>& on_progress) {
  const auto subscription = cancel.OnCancel([this] { CancelOpenCalls(); });
  const auto begin = std::chrono::steady_clock::now();
  for (const PlannedRequest& planned : plan) {
    if (!WaitForTurn(planned, options, cancel, begin)) {
      break;
    }
    Start(planned, on_progress);
  }
  std::unique_lock lock(mutex_);
  call_ended_.wait(lock, [this] { return open_calls_.empty(); });
  return {.measurements = std::move(measurements_),
          .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count()};
}

bool LoadRunner::WaitForTurn(const PlannedRequest& planned, const LoadOptions& options, CancelSignal& cancel,
                             std::chrono::steady_clock::time_point begin) {
  if (options.requests_per_second) {
    const auto start = begin + std::chrono::duration<double>(planned.start_seconds);
    const auto wait = start - std::chrono::steady_clock::now();
    return !cancel.WaitFor(std::chrono::duration_cast<std::chrono::milliseconds>(wait));
  }
  std::unique_lock lock(mutex_);
  call_ended_.wait(lock, [&] { return cancelled_ || static_cast<int64_t>(open_calls_.size()) < options.concurrency; });
  return !cancelled_;
}

void LoadRunner::Start(const PlannedRequest& planned, const std::function<void(int64_t, int64_t)>& on_progress) {
  const auto on_done = [this, on_progress](LoadCall* call, LoadMeasurement measurement) {
    const std::lock_guard lock(mutex_);
    open_calls_.erase(call);
    measurements_.push_back(std::move(measurement));
    on_progress(static_cast<int64_t>(measurements_.size()), static_cast<int64_t>(open_calls_.size()));
    // Under the lock: the runner may be gone as soon as its last call has ended.
    call_ended_.notify_all();
  };
  auto* call = new LoadCall(planned, timeout_seconds_, on_done);
  {
    const std::lock_guard lock(mutex_);
    if (cancelled_) {
      call->Cancel();
    }
    open_calls_.insert(call);
  }
  call->Begin(stub_);
}

void LoadRunner::CancelOpenCalls() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (LoadCall* call : open_calls_) {
    call->Cancel();
  }
  call_ended_.notify_all();
}

}  // namespace quire
