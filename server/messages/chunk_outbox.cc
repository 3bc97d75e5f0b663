#include "server/messages/chunk_outbox.h"

#include <string>
#include <utility>

#include "engine/base/strings.h"
#include "server/messages/response_translation.h"

namespace quire {
namespace {

// Far below the 4 MiB that clients receive by default, and large enough to write seldom.
constexpr int64_t kMaxMessageBytes = 256 << 10;

}  // namespace

absl::Status ChunkOutbox::CheckRoom(int64_t num_bytes) const {
  if (num_bytes > memory_->max_bytes_per_stream()) {
    return absl::ResourceExhaustedError(StrCat("the answer was not read: ", num_bytes, " bytes of it wait, at most ",
                                               memory_->max_bytes_per_stream(),
                                               " may (max_stream_buffer_bytes); read it faster, or ask for less"));
  }
  if (memory_->full() && num_bytes > kAlwaysAllowedBytes) {
    return absl::ResourceExhaustedError(StrCat("the answer was not read: ", num_bytes,
                                               " bytes of it wait, and all answers that wait fill the server's ",
                                               memory_->max_bytes(), " bytes; read it faster, or ask for less"));
  }
  return absl::OkStatus();
}

absl::Status ChunkOutbox::Add(v1::StreamChunk chunk) {
  if (!overflow_.ok()) return overflow_;
  const auto num_bytes = static_cast<int64_t>(chunk.ByteSizeLong());
  overflow_ = CheckRoom(num_bytes_ + num_bytes);
  if (!overflow_.ok()) {
    messages_.clear();
    memory_->Give(std::exchange(num_bytes_, 0));
    return overflow_;
  }
  memory_->Take(num_bytes);
  num_bytes_ += num_bytes;
  if (messages_.empty() || messages_.back().num_bytes + num_bytes > kMaxMessageBytes) {
    messages_.push_back({std::move(chunk), num_bytes});
    return absl::OkStatus();
  }
  Join(chunk, &messages_.back().chunk);
  messages_.back().num_bytes += num_bytes;
  return absl::OkStatus();
}

v1::StreamChunk ChunkOutbox::Take() {
  Message message = std::move(messages_.front());
  messages_.pop_front();
  num_bytes_ -= message.num_bytes;
  memory_->Give(message.num_bytes);
  return std::move(message.chunk);
}

}  // namespace quire
