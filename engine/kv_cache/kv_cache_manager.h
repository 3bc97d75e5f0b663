#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/base/ids.h"
#include "engine/kv_cache/block_pool.h"

namespace quire {

struct KvCacheUsage {
  int64_t num_blocks = 0;
  int64_t num_used_blocks = 0;    // owned by at least one request
  int64_t num_free_blocks = 0;    // never written, or freed and not findable
  int64_t num_cached_blocks = 0;  // owned by none, still findable by hash
  int64_t num_stored_tokens = 0;  // in used blocks, a shared block counted once
  int64_t peak_used_blocks = 0;
};

// Block tables of requests over a BlockPool. Knows ids and counts only: no tensor, no policy; that something
// does not fit is a return value. Not thread-safe: the engine's thread owns it.
class KvCacheManager {
 public:
  // `block_size` in tokens, >= 1.
  KvCacheManager(int64_t num_blocks, int64_t block_size);

  int64_t block_size() const { return block_size_; }
  int64_t num_blocks() const { return pool_.num_blocks(); }

  // How many blocks hold `num_tokens`. The one place that says so.
  int64_t BlocksFor(int64_t num_tokens) const;

  // Makes the request's table long enough for `num_tokens` in all (its first call registers the request).
  // All or nothing: false, and nothing changed, if the free blocks do not suffice.
  [[nodiscard]] bool AllocateSlots(RequestId request, int64_t num_tokens);

  // Drops blocks past the first `num_tokens`. A request that is not registered is a programmer error.
  void Truncate(RequestId request, int64_t num_tokens);

  // Registers `child` with the parent's blocks, shared by reference count. The caller copies the last,
  // partly filled block before either writes to it.
  void Fork(RequestId parent, RequestId child);

  // Gives the request's blocks back, tail first, so that its beginning stays findable longest. No-op if unknown.
  void Free(RequestId request);

  // [ceil(num_tokens / block_size)]; empty if unknown. Valid until the request's next change.
  std::span<const BlockId> BlockTable(RequestId request) const;
  int64_t NumTokens(RequestId request) const;

  KvCacheUsage Usage() const;
