#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "engine/checkpoint/checkpoint.h"

namespace quire {

// The storage type that a GGUF file means by its number, or nothing if quire does not read that type.
std::optional<StorageType> StorageTypeOfGgml(uint32_t ggml_type);

// The name by which ggml calls a type number ("Q4_K"), or "type 123, which is unknown".
std::string GgmlTypeName(uint32_t ggml_type);

// The types that quire reads, for messages: "F32, F16, ...".
std::string_view ReadableStorageTypes();

}  // namespace quire
