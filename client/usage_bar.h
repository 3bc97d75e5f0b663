#pragma once

#include <cstdint>
#include <span>
#include <string>

namespace quire {

// One block character for each of `values`, as high as its share of `max`; a blank for 0 or less. Values above `max`
// are as high as it.
std::string Sparkline(std::span<const double> values, double max);

// A character for each kind of cell of a bar.
struct BarCells {
  const char* used;
  const char* cached;
  const char* free;
};
inline constexpr BarCells kPlainCells = {"#", "+", "."};
inline constexpr BarCells kTerminalCells = {"█", "▒", "·"};

// A bar of `width` cells between brackets. What is not zero has a cell if there is room.
std::string UsageBar(int64_t used, int64_t cached, int64_t total, int width, const BarCells& cells = kPlainCells);

}  // namespace quire
