#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace quire {

// What stands at the beginning of some bytes.
enum class Utf8Kind { kCharacter, kInvalid, kIncomplete };

struct Utf8Unit {
  Utf8Kind kind;
  size_t num_bytes;  // of the character; of the longest beginning of one that is broken; of what is there so far
};

// `bytes` must not be empty. Overlong forms, surrogates and code points above U+10FFFF are invalid.
Utf8Unit NextUtf8Unit(std::string_view bytes);

// The offset of the first byte that is not part of a whole character; bytes.size() if there is none.
size_t Utf8ValidPrefix(std::string_view bytes);

inline constexpr std::string_view kReplacementCharacter = "\xEF\xBF\xBD";  // U+FFFD

// Takes characters from the front of `bytes` and appends them to `text`, broken ones as U+FFFD. A character whose
// end has not come yet stays in `bytes`, unless `is_last`.
void MoveUtf8(std::string& bytes, bool is_last, std::string& text);

}  // namespace quire
