#include "client/utf8.h"

#include <bit>

namespace quire {

std::optional<Utf8Character> FirstCharacter(std::string_view text) {
  if (text.empty()) {
    return std::nullopt;
  }
  const auto first = static_cast<uint8_t>(text[0]);
  if (first < 0x80) {
    return Utf8Character{first, 1};
  }
  // The leading ones of the first byte count the bytes of the character.
  const auto num_bytes = static_cast<size_t>(std::countl_one(first));
  if (num_bytes < 2 || num_bytes > 4 || text.size() < num_bytes) {
    return std::nullopt;
  }
  uint32_t code_point = first & (0x7FU >> num_bytes);
  for (size_t i = 1; i < num_bytes; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    if ((byte & 0xC0) != 0x80) {
      return std::nullopt;
    }
    code_point = (code_point << 6) | (byte & 0x3FU);
  }
  constexpr uint32_t kLeastOfLength[] = {0, 0, 0x80, 0x800, 0x10000};
  const bool is_surrogate = code_point >= 0xD800 && code_point < 0xE000;
  if (code_point < kLeastOfLength[num_bytes] || code_point > 0x10FFFF || is_surrogate) {
    return std::nullopt;
  }
  return Utf8Character{code_point, num_bytes};
}

bool IsValidUtf8(std::string_view text) {
  while (!text.empty()) {
    const auto character = FirstCharacter(text);
    if (!character) {
      return false;
    }
    text.remove_prefix(character->num_bytes);
  }
  return true;
}

}  // namespace quire
