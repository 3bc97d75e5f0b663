#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "engine/base/check.h"

namespace quire {

// The value below which `share`, in [0, 1], of `values` lie, interpolated between neighbours; values must not be empty.
inline double Percentile(std::vector<double> values, double share) {
  QUIRE_CHECK(!values.empty());
  std::sort(values.begin(), values.end());
  const double rank = share * static_cast<double>(values.size() - 1);
  const auto below = static_cast<size_t>(rank);
  const size_t above = std::min(below + 1, values.size() - 1);
  return std::lerp(values[below], values[above], rank - static_cast<double>(below));
}

inline double Median(std::vector<double> values) { return Percentile(std::move(values), 0.5); }

}  // namespace quire
