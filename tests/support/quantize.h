#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "engine/checkpoint/checkpoint.h"

namespace quire::testing {

// `values` (whole blocks) as a file stores them. Rounds to the nearest representable value; written for clarity
// and apart from the engine's own conversions, so that one can test the other.
std::vector<std::byte> Quantize(StorageType type, std::span<const float> values);

}  // namespace quire::testing
