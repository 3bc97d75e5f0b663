#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>
#include <string>

namespace quire {

using Json = nlohmann::ordered_json;

// `message` with the names of its fields, numbers as numbers (also 64-bit ones) and enum values in lower
// case without the enum's name ("stop_token"). Lists are always there; unset optional fields never.
Json MessageJson(const google::protobuf::Message& message);

// `json` on one line. `ascii_only` spells out all else, so that a terminal shows it and does not obey it.
std::string JsonLine(const Json& json, bool ascii_only);

}  // namespace quire
