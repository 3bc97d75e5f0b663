#pragma once

#include <cstdint>

namespace quire {

// A vocabulary index, in [0, vocab_size).
using TokenId = int32_t;

// A KV cache block, in [0, num_blocks).
using BlockId = int32_t;

// A token's place in the cache: block_id * block_size + offset.
using SlotId = int64_t;

// A request inside the engine: unique for the process's life, given in order of arrival. Callers' own
// request ids are strings and only label logs and answers.
enum class RequestId : uint64_t {};

}  // namespace quire
