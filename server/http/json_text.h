#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace quire {

// JSON on one line. What is not UTF-8, such as a caller's bytes in a message, is replaced.
inline std::string ToText(const nlohmann::json& json) {
  return json.dump(-1, ' ', /*ensure_ascii=*/false, nlohmann::json::error_handler_t::replace);
}

}  // namespace quire
