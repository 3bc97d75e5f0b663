#pragma once

#include <array>
#include <cstdint>

#include "bench/step_work.h"
#include "engine/model/decoder.h"
#include "engine/model/step_profile.h"

namespace quire {

// What work takes at least: multiplications and additions, and bytes of weights, keys and values that are read.
struct Cost {
  double ops = 0;
  double bytes = 0;

  Cost& operator+=(const Cost& other) {
    ops += other.ops;
    bytes += other.bytes;
    return *this;
  }
};

// By part of the forward pass. Parts that are neither linear layers nor attention cost nothing here.
using PartCosts = std::array<Cost, kNumStepParts>;

// The sizes that decide what a decoder's steps cost.
struct DecoderSizes {
  // Of all layers together. // [kNumStepParts]
  std::array<double, kNumStepParts> weight_elements = {};  // two operations each for a token, or a row of logits
  std::array<double, kNumStepParts> weight_bytes = {};     // read once a step
  double ops_per_score = 0;                                // of all layers and heads: query x key, weight x value
  double kv_bytes_per_token = 0;                           // of all layers, stored

  // All weights that a step with logits reads.
  double weight_bytes_per_step() const;
};

DecoderSizes SizesOf(const Decoder& decoder);

PartCosts CostOf(const DecoderSizes& sizes, const StepWork& work);
Cost Sum(const PartCosts& costs);

}  // namespace quire
