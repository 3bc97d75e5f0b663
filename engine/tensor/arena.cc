#include "engine/tensor/arena.h"

#include "engine/base/check.h"
#include "engine/base/math.h"

namespace quire {

std::span<std::byte> Arena::Take(int64_t size_bytes) {
  std::byte* piece = buffer_.data() + used_bytes_;
  used_bytes_ += AlignUp(size_bytes, kAlignment);
  QUIRE_CHECK_LE(used_bytes_, buffer_.size_bytes());
  return {piece, static_cast<size_t>(size_bytes)};
}

}  // namespace quire
