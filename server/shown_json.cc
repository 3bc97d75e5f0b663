#include "server/shown_json.h"

#include <nlohmann/json.hpp>

namespace quire {
namespace {

constexpr size_t kMaxShownBytes = 100;

}  // namespace

std::string ShownJson(const nlohmann::json& value) {
  // Writing what is nested recurses, as deep as the file's author likes.
  if (value.is_structured() && !value.empty()) return value.is_array() ? "[...]" : "{...}";
  std::string text = value.dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
  if (text.size() > kMaxShownBytes) text = text.substr(0, kMaxShownBytes) + "...";
  return text;
}

}  // namespace quire
