#pragma once

#include <cstdint>

#include "engine/checkpoint/checkpoint.h"

namespace quire {

// An upper bound of the resident bytes that a tokenizer made from `checkpoint` keeps, from the sizes of its
// vocabulary; for the memory sum. 0 if the checkpoint has no vocabulary. What one call holds while it runs is not in it.
int64_t EstimateTextLayerBytes(const Checkpoint& checkpoint);

}  // namespace quire
