#pragma once

#include <string_view>

namespace quire {

// chat_page.html, as it is served at "/".
extern const std::string_view kChatPage;

}  // namespace quire
