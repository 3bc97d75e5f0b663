#include "client/number_format.h"

#include <array>
#include <cstdio>
#include <cstdlib>

namespace quire {

std::string FormatBytes(int64_t num_bytes) {
  constexpr std::array kUnits = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = static_cast<double>(num_bytes);
  size_t unit = 0;
  // 1023.95 and more would be shown as 1024.0 of the smaller unit.
  while (std::abs(value) >= (unit == 0 ? 1024.0 : 1023.95) && unit + 1 < kUnits.size()) {
    value /= 1024.0;
    ++unit;
  }
  return FormatDecimal(value, unit == 0 ? 0 : 1) + " " + kUnits[unit];
}

std::string FormatCount(int64_t count) {
  std::string digits = std::to_string(count);
  const size_t first_digit = count < 0 ? 1 : 0;
  for (size_t place = digits.size(); place > first_digit + 3;) {
    place -= 3;
    digits.insert(place, ",");
  }
  return digits;
}

std::string FormatDecimal(double value, int num_decimals) {
  std::array<char, 64> text;
  const int length = std::snprintf(text.data(), text.size(), "%.*f", num_decimals, value);
  return length < static_cast<int>(text.size()) ? text.data() : "too large";
}

}  // namespace quire
