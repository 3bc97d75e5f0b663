#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "engine/tensor/buffer.h"

namespace quire {

// One buffer given out in 64-byte aligned pieces, so that many small tensors share huge pages: where page tables are
// nested, as in a virtual machine, reading weights from small pages runs at less than half the speed. Pieces live as
// long as the arena and are never given back one by one.
class Arena {
 public:
  static constexpr int64_t kAlignment = 64;

  Arena() = default;
  explicit Arena(int64_t size_bytes) : buffer_(size_bytes) {}

  // The next `size_bytes`, zeroed, as a multiple of kAlignment. Asking for more than is left is a programmer error.
  std::span<std::byte> Take(int64_t size_bytes);

  int64_t size_bytes() const { return buffer_.size_bytes(); }
  int64_t used_bytes() const { return used_bytes_; }

 private:
  Buffer buffer_;
  int64_t used_bytes_ = 0;
};

}  // namespace quire
