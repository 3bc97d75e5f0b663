#include "client/command.h"

#include <ostream>

#include "client/terminal_text.h"

namespace quire {

std::string ForOutput(const std::string& text, const CommandContext& context) {
  return context.console.out_is_terminal ? EscapeControls(text) : text;
}

void PrintJson(const Json& json, const CommandContext& context) {
  context.console.out << JsonLine(json, context.console.out_is_terminal) << std::flush;
}

}  // namespace quire
