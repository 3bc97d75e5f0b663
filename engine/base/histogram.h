#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

namespace quire {

// Counts of observations by upper bound, as Prometheus has them: bucket i counts values in
// (bounds[i - 1], bounds[i]], the last one all above. Adding allocates nothing.
class Histogram {
 public:
  Histogram() = default;
  // `bounds` ascend.
  explicit Histogram(std::vector<double> bounds) : bounds_(std::move(bounds)), counts_(bounds_.size() + 1, 0) {}

  void Add(double value) {
    const auto bucket = std::lower_bound(bounds_.begin(), bounds_.end(), value) - bounds_.begin();
    ++counts_[static_cast<size_t>(bucket)];
    ++num_values_;
    sum_ += value;
    max_ = std::max(max_, value);
  }

  std::span<const double> bounds() const { return bounds_; }
  std::span<const int64_t> counts() const { return counts_; }  // [bounds + 1]
  int64_t num_values() const { return num_values_; }
  double sum() const { return sum_; }
  double max() const { return max_; }  // 0 without values

 private:
  std::vector<double> bounds_;
  std::vector<int64_t> counts_;
  int64_t num_values_ = 0;
  double sum_ = 0;
  double max_ = 0;
};

}  // namespace quire
