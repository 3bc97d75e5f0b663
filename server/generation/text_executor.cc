#include "server/generation/text_executor.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <utility>

#include "engine/base/status.h"

namespace quire {

void TextStrand::Post(std::function<void()> job) {
  {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(std::move(job));
    if (scheduled_) return;
    scheduled_ = true;
  }
  pool_->Post([self = shared_from_this()] { self->RunOne(); });
}

void TextStrand::RunOne() {
  std::function<void()> job;
  {
    const std::lock_guard lock(mutex_);
    job = std::move(jobs_.front());
    jobs_.pop_front();
  }
  job();
  {
    const std::lock_guard lock(mutex_);
    scheduled_ = !jobs_.empty();
    if (!scheduled_) return;
  }
  pool_->Post([self = shared_from_this()] { self->RunOne(); });
}

TextExecutor::TextExecutor(int num_threads, int max_queued_encodes, int64_t max_text_bytes)
    : max_queued_encodes_(max_queued_encodes),
      max_text_bytes_(max_text_bytes),
      strand_pool_(1, std::numeric_limits<size_t>::max()),
      encode_pool_(std::max(1, num_threads - 1), static_cast<size_t>(max_queued_encodes)) {}

absl::Status TextExecutor::PostEncode(int64_t text_bytes, std::function<void()> job) {
  const int64_t before_bytes = text_bytes_.fetch_add(text_bytes);
  if (before_bytes > 0 && before_bytes + text_bytes > max_text_bytes_) {
    text_bytes_ -= text_bytes;
    return Overloaded(StrCat("prompts waiting to be encoded have ", before_bytes, " bytes, and with ", text_bytes,
                             " more pass the limit of ", max_text_bytes_, "; try again"),
                      std::chrono::seconds(1));
  }
  auto counted = [this, text_bytes, job = std::move(job)] {
    job();
    text_bytes_ -= text_bytes;
  };
  if (encode_pool_.TryPost(std::move(counted))) return absl::OkStatus();
  text_bytes_ -= text_bytes;
  return Overloaded(StrCat("prompts waiting to be encoded: ", max_queued_encodes_, ", the limit; try again"),
                    std::chrono::seconds(1));
}

std::shared_ptr<TextStrand> TextExecutor::NewStrand() { return std::make_shared<TextStrand>(&strand_pool_); }

}  // namespace quire
