#include "engine/checkpoint/byte_cursor.h"

#include <format>

#include "engine/base/status.h"

namespace quire {

absl::StatusOr<std::string_view> ByteCursor::ReadString(std::string_view what) {
  QUIRE_ASSIGN_OR_RETURN(const uint64_t length, Read<uint64_t>(what));
  const auto* text = reinterpret_cast<const char*>(bytes_.data() + offset_);
  QUIRE_RETURN_IF_ERROR(Skip(length, what));
  return std::string_view(text, length);
}

absl::Status ByteCursor::Skip(uint64_t num_bytes, std::string_view what) {
  if (num_bytes > static_cast<uint64_t>(remaining_bytes())) return TooShort(what, num_bytes);
  offset_ += static_cast<int64_t>(num_bytes);
  return absl::OkStatus();
}

absl::Status ByteCursor::TooShort(std::string_view what, uint64_t num_bytes) const {
  return absl::InvalidArgumentError(std::format("{}: expected {} bytes at byte {}, found {} before the end of the file",
                                                what, num_bytes, offset_, remaining_bytes()));
}

std::string Printable(std::string_view text, size_t max_bytes) {
  size_t end = text.size();
  if (end > max_bytes) {
    end = max_bytes;
    // Cuts before a UTF-8 character, not within.
    while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xc0U) == 0x80U) --end;
  }
  std::string printable;
  for (size_t i = 0; i < end; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    // U+0080 to U+009F are control characters too: 0xc2 and a byte below 0xa0.
    const bool starts_control = byte == 0xc2 && i + 1 < end && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (byte == '\n') {
      printable += "\\n";
    } else if (byte < 0x20 || byte == 0x7f || starts_control) {
      printable += std::format("\\x{:02x}", byte);
    } else {
      printable += text[i];
    }
  }
  return end < text.size() ? printable + "..." : printable;
}

}  // namespace quire
