#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>

namespace quire {

// What an error says of a wrong value from a configuration file or a flag: one short line of ASCII, whatever the value
// holds and however deep it is nested.
std::string ShownJson(const nlohmann::json& value);

}  // namespace quire
