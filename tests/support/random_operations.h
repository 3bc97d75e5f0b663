#pragma once

#include <cstdint>
#include <cstdlib>
#include <span>
#include <string_view>

#include "engine/kv_cache/block_hash.h"

namespace quire::testing {

// Operations of all runs of a random test together; QUIRE_RANDOM_OPERATIONS asks for more. Sanitizers make each ten
// times as slow.
inline int64_t NumRandomOperations(int64_t by_default) {
  if (const char* asked = std::getenv("QUIRE_RANDOM_OPERATIONS")) return std::atoll(asked);
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  return by_default / 10;
#else
  return by_default;
#endif
}

// Four values only: nearly every block collides with others.
inline BlockHash WeakHash(BlockHash parent, std::span<const TokenId> token_ids, std::string_view cache_namespace) {
  return HashBlock(parent, token_ids, cache_namespace) % 4;
}

}  // namespace quire::testing
