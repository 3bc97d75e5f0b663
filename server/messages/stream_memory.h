#pragma once

#include <atomic>
#include <cstdint>

namespace quire {

// What answers may take while they wait for their readers: each, and all together. Thread-safe.
class StreamMemory {
 public:
  StreamMemory(int64_t max_bytes_per_stream, int64_t max_bytes)
      : max_bytes_per_stream_(max_bytes_per_stream), max_bytes_(max_bytes) {}

  int64_t max_bytes_per_stream() const { return max_bytes_per_stream_; }
  int64_t max_bytes() const { return max_bytes_; }
  bool full() const { return used_bytes_.load(std::memory_order_relaxed) > max_bytes_; }

  void Take(int64_t num_bytes) { used_bytes_.fetch_add(num_bytes, std::memory_order_relaxed); }
  void Give(int64_t num_bytes) { used_bytes_.fetch_sub(num_bytes, std::memory_order_relaxed); }

 private:
  const int64_t max_bytes_per_stream_;
  const int64_t max_bytes_;
  std::atomic<int64_t> used_bytes_ = 0;
};

}  // namespace quire
