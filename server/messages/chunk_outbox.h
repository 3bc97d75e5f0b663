#pragma once

#include <cstdint>
#include <deque>

#include "absl/status/status.h"
#include "quire/v1/generation.pb.h"
#include "server/messages/stream_memory.h"

namespace quire {

// Chunks of an answer that wait for its reader. They join into messages of a size that any client receives. What may
// wait is bounded, for this answer and for all together: past that the reader has lost its answer, and what waited is
// dropped.
class ChunkOutbox {
 public:
  // What an answer may always keep waiting, so that readers who are merely late suffer nothing from those who do not
  // read at all.
  static constexpr int64_t kAlwaysAllowedBytes = 64 << 10;

  // `memory` outlives the outbox.
  explicit ChunkOutbox(StreamMemory* memory) : memory_(memory) {}
  ~ChunkOutbox() { memory_->Give(num_bytes_); }
  ChunkOutbox(const ChunkOutbox&) = delete;
  ChunkOutbox& operator=(const ChunkOutbox&) = delete;

  // RESOURCE_EXHAUSTED, from now on, when more would wait than a stream may, or more than kAlwaysAllowedBytes while the
  // memory for all streams is full.
  absl::Status Add(v1::StreamChunk chunk);

  bool empty() const { return messages_.empty(); }
  // The oldest; there must be one.
  v1::StreamChunk Take();
  int64_t num_bytes() const { return num_bytes_; }

 private:
  struct Message {
    v1::StreamChunk chunk;
    int64_t num_bytes = 0;
  };

  absl::Status CheckRoom(int64_t num_bytes) const;

  StreamMemory* const memory_;
  std::deque<Message> messages_;
  int64_t num_bytes_ = 0;  // of messages_
  absl::Status overflow_;
};

}  // namespace quire
