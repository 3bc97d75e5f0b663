#include "client/terminal_text.h"

#include <cstdint>
#include <cstdio>

#include "client/utf8.h"

namespace quire {
namespace {

std::string Spell(const char* format, uint32_t value) {
  char spelled[16];
  std::snprintf(spelled, sizeof(spelled), format, value);
  return spelled;
}

bool IsControl(uint32_t code_point) { return code_point < 0x20 || (code_point >= 0x7F && code_point < 0xA0); }

std::string Escape(std::string_view text, bool keep_line_layout) {
  std::string escaped;
  escaped.reserve(text.size());
  while (!text.empty()) {
    const auto character = FirstCharacter(text);
    const size_t num_bytes = character ? character->num_bytes : 1;
    if (!character) {
      escaped += Spell("\\x%02x", static_cast<uint8_t>(text[0]));
    } else if (!IsControl(character->code_point)) {
      escaped += text.substr(0, num_bytes);
    } else if (text[0] == '\n') {
      escaped += keep_line_layout ? "\n" : "\\n";
    } else if (text[0] == '\t') {
      escaped += keep_line_layout ? "\t" : "\\t";
    } else {
      escaped += Spell(num_bytes == 1 ? "\\x%02x" : "\\u%04x", character->code_point);
    }
    text.remove_prefix(num_bytes);
  }
  return escaped;
}

}  // namespace

std::string EscapeControls(std::string_view text) { return Escape(text, true); }

std::string EscapeToOneLine(std::string_view text) { return Escape(text, false); }

}  // namespace quire
