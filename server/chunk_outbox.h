#pragma once

#include <cstdint>
#include <deque>

#include "absl/status/status.h"
#include "quire/v1/generation.pb.h"

namespace quire {

// Chunks of an answer that wait for its reader. They join into messages of a size that any client receives. What may
// wait is bounded: past that the reader has lost its answer, and what waited is dropped.
class ChunkOutbox {
 public:
  explicit ChunkOutbox(int64_t max_bytes) : max_bytes_(max_bytes) {}

  // RESOURCE_EXHAUSTED, from now on, when more than max_bytes would wait.
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

  const int64_t max_bytes_;
  std::deque<Message> messages_;
  int64_t num_bytes_ = 0;  // of messages_
  absl::Status overflow_;
};

}  // namespace quire
