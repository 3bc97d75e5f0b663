#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"

namespace quire {

// Reads little-endian values from the front of untrusted bytes and never past their end. `what` names what is
// read, for the error: "what: expected 8 bytes at byte 24, found 3 before the end of the file".
class ByteCursor {
 public:
  explicit ByteCursor(std::span<const std::byte> bytes) : bytes_(bytes) {}

  template <typename T>
  absl::StatusOr<T> Read(std::string_view what) {
    static_assert(std::endian::native == std::endian::little);
    if (remaining_bytes() < static_cast<int64_t>(sizeof(T))) return TooShort(what, sizeof(T));
    T value;
    std::memcpy(&value, bytes_.data() + offset_, sizeof(T));
    offset_ += sizeof(T);
    return value;
  }

  // A length of 64 bits and that many bytes, which stay where they are.
  absl::StatusOr<std::string_view> ReadString(std::string_view what);

  absl::Status Skip(uint64_t num_bytes, std::string_view what);

  int64_t offset_bytes() const { return offset_; }
  int64_t remaining_bytes() const { return static_cast<int64_t>(bytes_.size()) - offset_; }
  // The bytes [begin, offset_bytes()).
  std::span<const std::byte> since(int64_t begin) const { return bytes_.subspan(begin, offset_ - begin); }

 private:
  absl::Status TooShort(std::string_view what, uint64_t num_bytes) const;

  std::span<const std::byte> bytes_;
  int64_t offset_ = 0;
};

// Text from a file as a message may show it: control characters escaped, at most `max_bytes` of it.
std::string Printable(std::string_view text, size_t max_bytes = 80);

}  // namespace quire
