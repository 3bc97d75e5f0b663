#include "engine/kv_cache/block_hash.h"

#include "absl/hash/hash.h"
#include "absl/types/span.h"

namespace quire {

BlockHash HashBlock(BlockHash parent, std::span<const TokenId> token_ids, std::string_view cache_namespace) {
  return absl::HashOf(parent, absl::MakeConstSpan(token_ids.data(), token_ids.size()),
                      absl::string_view(cache_namespace.data(), cache_namespace.size()));
}

}  // namespace quire
