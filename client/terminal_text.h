#pragma once

#include <string>
#include <string_view>

namespace quire {

// `text` with every control character but newline and tab spelled out (\x1b, \u009b), so that what a model
// or a stranger wrote cannot drive the terminal. Bytes that are not UTF-8 are spelled out too.
std::string EscapeControls(std::string_view text);

// The same on one line: newline and tab are spelled out as well.
std::string EscapeToOneLine(std::string_view text);

}  // namespace quire
