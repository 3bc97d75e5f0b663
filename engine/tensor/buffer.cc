#include "engine/tensor/buffer.h"

#include <sys/mman.h>

#include <new>

namespace quire {

// Anonymous mappings are zeroed, page aligned, take no memory before their first use and give it back at once.
Buffer::Buffer(int64_t size_bytes) : size_bytes_(size_bytes) {
  if (size_bytes == 0) return;
  void* mapped = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  constexpr int64_t kHugePageBytes = 2 << 20;
  // A refusal only costs speed.
  if (size_bytes >= kHugePageBytes) madvise(mapped, size_bytes, MADV_HUGEPAGE);
  data_ = static_cast<std::byte*>(mapped);
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, size_bytes_);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

void Buffer::Touch() const {
  constexpr int64_t kPageBytes = 4096;
  volatile std::byte* bytes = data_;
  for (int64_t i = 0; i < size_bytes_; i += kPageBytes) bytes[i] = bytes[i];  // a write, contents kept
}

}  // namespace quire
