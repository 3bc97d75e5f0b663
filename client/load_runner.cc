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
  {
    std::unique_lock lock(mutex_);
    call_ended_.wait(lock, [this] { return open_calls_.empty(); });
  }
  const auto end = std::chrono::steady_clock::now();
  ended_calls_.clear();
  return {.measurements = std::move(measurements_), .seconds = std::chrono::duration<double>(end - begin).count()};
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
  std::unique_ptr<LoadCall> new_call = transport_->NewCall(planned);
  LoadCall* const call = new_call.get();
  std::vector<std::unique_ptr<LoadCall>> ended_calls;
  // Under the lock, so that the call can't end before it stands among the open ones.
  const std::lock_guard lock(mutex_);
  if (cancelled_) {
    call->Cancel();
  }
  open_calls_.emplace(call, std::move(new_call));
  call->Begin([this, call, &on_progress] { OnEnd(call, on_progress); });
  ended_calls.swap(ended_calls_);
}

void LoadRunner::OnEnd(LoadCall* call, const std::function<void(int64_t, int64_t)>& on_progress) {
  const std::lock_guard lock(mutex_);
  measurements_.push_back(std::move(call->measurement()));
  ended_calls_.push_back(std::move(open_calls_.extract(call).mapped()));
  on_progress(static_cast<int64_t>(measurements_.size()), static_cast<int64_t>(open_calls_.size()));
  call_ended_.notify_all();
}

void LoadRunner::CancelOpenCalls() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  for (const auto& [tag, call] : open_calls_) {
    call->Cancel();
  }
  call_ended_.notify_all();
}

}  // namespace quire
