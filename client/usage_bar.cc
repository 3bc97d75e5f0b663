#include "client/usage_bar.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace quire {
namespace {

std::string Repeat(const char* cell, int count) {
  std::string text;
  for (int i = 0; i < count; ++i) text += cell;
  return text;
}

}  // namespace

std::string Sparkline(std::span<const double> values, double max) {
  constexpr std::array kLevels = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr double kHighest = kLevels.size() - 1;
  std::string line;
  for (const double value : values) {
    const double share = max > 0 ? std::clamp(value / max, 0.0, 1.0) : 0.0;
    line += kLevels[static_cast<size_t>(std::ceil(share * kHighest))];
  }
  return line;
}

std::string UsageBar(int64_t used, int64_t cached, int64_t total, int width, const BarCells& cells) {
  const auto count = [&](int64_t blocks) -> int {
    if (blocks <= 0 || total <= 0) {
      return 0;
    }
    const double share = static_cast<double>(std::min(blocks, total)) / static_cast<double>(total);
    return std::clamp(static_cast<int>(share * width + 0.5), 1, width);
  };
  const int num_used = count(used);
  const int num_cached = std::min(count(cached), width - num_used);
  return "[" + Repeat(cells.used, num_used) + Repeat(cells.cached, num_cached) +
         Repeat(cells.free, width - num_used - num_cached) + "]";
}

}  // namespace quire
