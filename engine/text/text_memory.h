#pragma once

#include <cstdint>

#include "engine/checkpoint/checkpoint.h"

namespace quire {

// An upper bound of the resident bytes that a tokenizer made from `checkpoint` keeps, from the sizes of its
// vocabulary; for the memory sum. 0 if the checkpoint has no vocabulary. What encoding takes is not in it.
int64_t EstimateTextLayerBytes(const Checkpoint& checkpoint);

// An upper bound of what `num_threads` threads take that each encode a prompt of `max_text_bytes`.
int64_t EncodingBytesFor(int64_t max_text_bytes, int64_t num_threads);

// Of all tokens, the most bytes that one stands for; 0 if the checkpoint has no vocabulary that can be used.
int64_t LongestTokenBytes(const Checkpoint& checkpoint);

}  // namespace quire
