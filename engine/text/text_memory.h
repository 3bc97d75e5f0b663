#pragma once

#include <cstdint>

#include "engine/checkpoint/checkpoint.h"

namespace quire {

// An upper bound of the resident bytes that a tokenizer made from `checkpoint` keeps, from the sizes of its
// vocabulary; for the memory sum. 0 if the checkpoint has no vocabulary. Not in it: what one call holds while it runs
// (about 10 bytes a byte of text), and up to 2 MiB of pattern states for each further thread that encodes.
int64_t EstimateTextLayerBytes(const Checkpoint& checkpoint);

}  // namespace quire
