#include "engine/tensor/buffer.h"

#include <sys/mman.h>
#include <unistd.h>

#include <new>

#include "engine/base/math.h"

namespace quire {

namespace {

constexpr int64_t kHugePageBytes = 2 << 20;

std::byte* Map(int64_t size_bytes) {
  void* mapped = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::byte*>(mapped);
}

// Maps more than asked for and gives back what lies before the first huge page's beginning, and after the end.
std::byte* MapForHugePages(int64_t size_bytes) {
  const int64_t page_bytes = sysconf(_SC_PAGESIZE);
  const int64_t kept_bytes = AlignUp(size_bytes, page_bytes);
  std::byte* mapped = Map(kept_bytes + kHugePageBytes);
  const auto address = reinterpret_cast<int64_t>(mapped);
  const int64_t before = AlignUp(address, kHugePageBytes) - address;
  if (before > 0) munmap(mapped, before);
  if (before < kHugePageBytes) munmap(mapped + before + kept_bytes, kHugePageBytes - before);
  madvise(mapped + before, kept_bytes, MADV_HUGEPAGE);  // a refusal only costs speed
  return mapped + before;
}

}  // namespace

// Anonymous mappings are zeroed, take no memory before their first use and give it back at once.
Buffer::Buffer(int64_t size_bytes) : size_bytes_(size_bytes) {
  if (size_bytes == 0) return;
  data_ = size_bytes >= kHugePageBytes ? MapForHugePages(size_bytes) : Map(size_bytes);
}

Buffer::~Buffer() {
  if (data_ != nullptr) munmap(data_, size_bytes_);
}

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_bytes_, other.size_bytes_);
  return *this;
}

void Buffer::Touch(int64_t begin, int64_t end) const {
  constexpr int64_t kPageBytes = 4096;
  volatile std::byte* bytes = data_;
  for (int64_t i = begin; i < end; i += kPageBytes) bytes[i] = bytes[i];  // a write, contents kept
}

}  // namespace quire
