#include "client/cancel_signal.h"

#include <sys/eventfd.h>
#include <unistd.h>

#include <utility>

namespace quire {

CancelSignal::CancelSignal() : fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {}

CancelSignal::~CancelSignal() { close(fd_); }

void CancelSignal::Cancel() {
  const std::lock_guard lock(mutex_);
  cancelled_ = true;
  eventfd_write(fd_, 1);
  for (const auto& [id, action] : actions_) {
    action();
  }
  changed_.notify_all();
}

bool CancelSignal::IsCancelled() const {
  const std::lock_guard lock(mutex_);
  return cancelled_;
}

void CancelSignal::Reset() {
  const std::lock_guard lock(mutex_);
  cancelled_ = false;
  eventfd_t drained = 0;
  eventfd_read(fd_, &drained);
}

CancelSignal::Subscription CancelSignal::OnCancel(std::function<void()> action) {
  const std::lock_guard lock(mutex_);
  if (cancelled_) {
    action();
  }
  const uint64_t id = next_id_++;
  actions_.emplace(id, std::move(action));
  return Subscription(*this, id);
}

bool CancelSignal::WaitFor(std::chrono::milliseconds delay) const {
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, delay, [this] { return cancelled_; });
}

void CancelSignal::Unsubscribe(uint64_t id) {
  const std::lock_guard lock(mutex_);
  actions_.erase(id);
}

}  // namespace quire
