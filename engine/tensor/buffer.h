#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

namespace quire {

// Owns zeroed bytes, page aligned; large buffers are aligned for huge pages and ask for them. Movable, not copyable.
// Pages take no memory before their first use, so that the threads that use them first place them.
class Buffer {
 public:
  Buffer() = default;
  // A size of 0 owns nothing. Out of memory throws std::bad_alloc.
  explicit Buffer(int64_t size_bytes);
  ~Buffer();
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  Buffer(const Buffer&) = delete;
  Buffer& operator=(const Buffer&) = delete;

  std::byte* data() const { return data_; }
  int64_t size_bytes() const { return size_bytes_; }

  // Makes the pages of bytes [begin, end) resident now, so that memory that was promised is there; contents are kept.
  void Touch(int64_t begin, int64_t end) const;

  template <typename T>
  T* as() const {
    return reinterpret_cast<T*>(data_);
  }

 private:
  std::byte* data_ = nullptr;
  int64_t size_bytes_ = 0;
};

}  // namespace quire
