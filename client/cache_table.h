#pragma once

#include <string>

#include "quire/v1/cache.pb.h"

namespace quire {

// The statistics as a person reads them; tenants' and requests' tables only if there are any.
std::string RenderCacheStats(const v1::CacheStats& stats);

std::string RenderCacheConfig(const v1::CacheConfig& config);

// Parts of it, for a view that has its own layout. Tables of at most `max_rows` rows, the largest holders first, and a
// line that counts the others; empty if there are none.
std::string RenderTenants(const v1::CacheStats& stats, int max_rows);
std::string RenderRequests(const v1::CacheStats& stats, int max_rows);

// "3 of 40 within 1 step, at most 0.013 s": how soon ended requests gave their blocks back.
std::string ReleaseText(const v1::CacheStats& stats);

// 0 of 0 is 0.
double Percent(int64_t part, int64_t whole);

}  // namespace quire
