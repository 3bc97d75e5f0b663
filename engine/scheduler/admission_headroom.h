#pragma once

#include <cstdint>

namespace quire {

// How many blocks an admission must leave for those that run already. They grow by a block every block_size steps, and
// nobody knows when they end: admitting into the last free block means preempting soon and computing twice. So the
// headroom is learned: each preemption widens it, each request that ends lets it shrink slowly again. That is the
// hysteresis between preempting and resuming.
class AdmissionHeadroom {
 public:
  explicit AdmissionHeadroom(int64_t num_blocks) : num_pool_blocks_(num_blocks) {}

  int64_t num_blocks() const;

  void OnPreemption();
  void OnFinish();

 private:
  int64_t num_pool_blocks_;
  double ratio_ = kLeastRatio;

  static constexpr double kLeastRatio = 0.01;
  static constexpr double kMostRatio = 0.5;
  static constexpr double kPreemptionStep = 0.02;
  static constexpr double kFinishFactor = 0.995;
};

}  // namespace quire
