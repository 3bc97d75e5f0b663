#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/strings.h"

namespace quire {

// What an error, which is logged, says of a wrong value that may be a key, put there by mistake: its type alone.
inline std::string HiddenJson(const nlohmann::json& value) { return StrCat("a value of type ", value.type_name()); }

}  // namespace quire
