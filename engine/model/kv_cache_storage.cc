#include "engine/model/kv_cache_storage.h"

namespace quire {

KvCacheStorage::KvCacheStorage(int64_t num_layers, const KvLayout& layout, int64_t num_blocks)
    : num_layers_(num_layers),
      layout_(layout),
      num_blocks_(num_blocks),
      bytes_(num_blocks * BytesPerBlock(num_layers, layout)) {}

KvLayerView KvCacheStorage::layer(int64_t layer) const {
  const int64_t layer_bytes = num_blocks_ * layout_.BytesPerBlock();
  std::byte* keys = bytes_.data() + layer * layer_bytes;
  return {layout_, keys, keys + layer_bytes / 2};
}

}  // namespace quire
