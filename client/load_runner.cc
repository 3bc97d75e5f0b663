#include "client/load_runner.h"

#include <chrono>
#include <thread>
#include <utility>

namespace quire {

LoadResult LoadRunner::Run(const std::vector<PlannedRequest>& plan, const LoadOptions& options, CancelSignal& cancel,
                           const std::function<void(int64_t, int64_t)>& on_progress) {
  const auto subscription = cancel.OnCancel([this] { CancelOpenCalls(); });
  const auto begin = std::chrono::steady_clock::now();
  std::thread server([&] { ServeQueue(on_progress); });
  for (const PlannedRequest& planned : plan) {
    if (!WaitForTurn(planned, options, cancel, begin)) {
      break;
    }
    Start(planned);
  }
  {
    std::unique_lock lock(mutex_);
    call_ended_.wait(lock, [this] { return open_calls_.empty(); });
  }
  queue_.Shutdown();
  server.join();
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

void LoadRunner::Start(const PlannedRequest& planned) {
  auto call = std::make_unique<LoadCall>(planned, timeout_seconds_);
  // Under the lock, so that the call can't end before it stands among the open ones.
  const std::lock_guard lock(mutex_);
  if (cancelled_) {
    call->Cancel();
  }
  call->Begin(stub_, &queue_);
  LoadCall* const tag = call.get();
  open_calls_.emplace(tag, std::move(call));
}

void LoadRunner::ServeQueue(const std::function<void(int64_t, int64_t)>& on_progress) {
  void* tag = nullptr;
  bool ok = false;
  while (queue_.Next(&tag, &ok)) {
    auto* const call = static_cast<LoadCall*>(tag);
    if (call->Proceed(ok)) {
      continue;
    }
    const std::lock_guard lock(mutex_);
    measurements_.push_back(std::move(call->measurement()));
    open_calls_.erase(call);
    on_progress(static_cast<int64_t>(measurements_.size()), static_cast<int64_t>(open_calls_.size()));
    call_ended_.notify_all();
  }
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
