#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace quire {

// What an error says of a wrong value from a file, a flag or a request: one short line of ASCII, whatever the value
// holds and however deep it is nested.
std::string ShownJson(const nlohmann::json& value);

}  // namespace quire
