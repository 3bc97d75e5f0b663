#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace quire {

struct Utf8Character {
  uint32_t code_point = 0;
  size_t num_bytes = 0;
};

// The character that `text` begins with; nothing if those bytes are not UTF-8.
std::optional<Utf8Character> FirstCharacter(std::string_view text);

bool IsValidUtf8(std::string_view text);

}  // namespace quire
