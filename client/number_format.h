#pragma once

#include <cstdint>
#include <string>

namespace quire {

// In the largest unit of B, KiB, MiB, GiB, TiB that keeps it at least 1: "0 B", "23040 B" is "22.5 KiB".
std::string FormatBytes(int64_t num_bytes);

// With the thousands apart: 134515008 is "134,515,008".
std::string FormatCount(int64_t count);

// With `num_decimals` digits after the point.
std::string FormatDecimal(double value, int num_decimals);

}  // namespace quire
