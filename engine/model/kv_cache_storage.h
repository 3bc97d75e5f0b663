#pragma once

#include <cstdint>

#include "engine/base/ids.h"
#include "engine/ops/kv_layout.h"
#include "engine/ops/parallel.h"
#include "engine/tensor/buffer.h"

namespace quire {

// The physical KV cache of all layers. Who owns which block is kv_cache/'s business; this holds the bytes.
class KvCacheStorage {
 public:
  KvCacheStorage(int64_t num_layers, const KvLayout& layout, int64_t num_blocks);

  // Of all layers: 2 * layers * kv_heads * block_size * (head_dim * bytes per element, and 4 for an int8 row's scale).
  static int64_t BytesPerBlock(int64_t num_layers, const KvLayout& layout) {
    return num_layers * layout.BytesPerBlock();
  }

  const KvLayout& layout() const { return layout_; }
  int64_t num_blocks() const { return num_blocks_; }
  int64_t num_layers() const { return num_layers_; }
  int64_t size_bytes() const { return bytes_.size_bytes(); }

  KvLayerView layer(int64_t layer) const;
  // On every thread of the team: makes all of it resident.
  void Touch(Worker& worker) const { TouchPages(worker, bytes_); }

 private:
  int64_t num_layers_;
  KvLayout layout_;
  int64_t num_blocks_;
  Buffer bytes_;  // [num_layers, keys and values, num_blocks, num_kv_heads, tile]
};

}  // namespace quire
