#pragma once

#include <cstdint>
#include <string>

#include "quire/v1/cache.pb.h"

namespace quire {

// A bar of `width` cells: '#' for used, '+' for cached, '.' for free blocks. What is not zero has a cell if
// there is room.
std::string UsageBar(int64_t used, int64_t cached, int64_t total, int width);

// The statistics as a person reads them; the requests' table only if there are any.
std::string RenderCacheStats(const v1::CacheStats& stats);

}  // namespace quire
