#include "engine/ops/rope.h"

#include <cmath>

#include "engine/base/check.h"
#include "engine/ops/row_kernels.h"

namespace quire {

Rope::Rope(const RopeConfig& config, int64_t max_tokens)
    : style_(config.style),
      num_pairs_(config.rotary_dim / 2),
      cosines_(max_tokens * num_pairs_ * static_cast<int64_t>(sizeof(float))),
      sines_(cosines_.size_bytes()) {
  QUIRE_CHECK(config.frequency_factors.empty() || static_cast<int64_t>(config.frequency_factors.size()) == num_pairs_);
  for (int64_t i = 0; i < num_pairs_; ++i) {
    const double exponent = -2.0 * static_cast<double>(i) / static_cast<double>(config.rotary_dim);
    const double factor = config.frequency_factors.empty() ? 1.0 : config.frequency_factors[i];
    frequencies_.push_back(std::pow(config.theta, exponent) / factor);
  }
}

int64_t Rope::BytesFor(const RopeConfig& config, int64_t max_tokens) {
  return 2 * max_tokens * config.rotary_dim / 2 * static_cast<int64_t>(sizeof(float));
}

void Rope::SetPositions(Worker& worker, std::span<const int64_t> positions) {
  worker.For(static_cast<int64_t>(positions.size()), [&](int64_t begin, int64_t end) {
    for (int64_t token = begin; token < end; ++token) {
      float* cosines = cosines_.as<float>() + token * num_pairs_;
      float* sines = sines_.as<float>() + token * num_pairs_;
      for (int64_t i = 0; i < num_pairs_; ++i) {
        const double angle = static_cast<double>(positions[token]) * frequencies_[i];
        cosines[i] = static_cast<float>(std::cos(angle));
        sines[i] = static_cast<float>(std::sin(angle));
      }
    }
  });
}

void Rope::Rotate(int64_t token, float* head) const {
  const float* cosines = cosines_.as<float>() + token * num_pairs_;
  const float* sines = sines_.as<float>() + token * num_pairs_;
  const auto rotate = style_ == RopeStyle::kAdjacentPairs ? RotateNeighbours : RotateHalves;
  rotate(cosines, sines, num_pairs_, head);
}

}  // namespace quire
