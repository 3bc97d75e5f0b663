#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "engine/base/ids.h"

namespace quire {

using BlockHash = uint64_t;

// Of a full block in its place: of what precedes it (0 for a request's first block), its tokens, and whose prefixes it
// may be shared with. Only a hint where to look: PrefixIndex compares what it finds.
using BlockHashFunction = BlockHash (*)(BlockHash parent, std::span<const TokenId> token_ids,
                                        std::string_view cache_namespace);

BlockHash HashBlock(BlockHash parent, std::span<const TokenId> token_ids, std::string_view cache_namespace);

}  // namespace quire
