#pragma once

#include <concepts>

namespace quire {

// The least integer not below a / b; a >= 0, b > 0.
template <std::integral T>
constexpr T CeilDiv(T a, T b) {
  return (a + b - 1) / b;
}

// The least multiple of `alignment` not below `value`; value >= 0, alignment > 0.
template <std::integral T>
constexpr T AlignUp(T value, T alignment) {
  return CeilDiv(value, alignment) * alignment;
}

}  // namespace quire
