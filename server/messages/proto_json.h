#pragma once

#include <google/protobuf/message.h>

#include <nlohmann/json.hpp>

namespace quire {

// A message as JSON for people and scripts: all fields by their names in the .proto file, unset ones too, enums by
// name, and 64-bit integers as numbers, where protobuf's own JSON has strings.
nlohmann::json ToJson(const google::protobuf::Message& message);

}  // namespace quire
