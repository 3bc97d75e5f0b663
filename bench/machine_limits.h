#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "engine/ops/parallel.h"

namespace quire {

// What this machine can do at most, measured with loops that do nothing else, on a given number of threads.
struct MachineLimits {
  int64_t num_threads = 0;
  std::string vector_target;                         // "AVX3_SPR"
  double memory_bytes_per_second = 0;                // reading 1 GiB, more than caches hold
  double f32_ops_per_second = 0;                     // fused multiply-adds, each two
  double bf16_ops_per_second = 0;                    // dot products in vector units
  double int8_ops_per_second = 0;                    // u8 x s8 dot products in vector units
  std::optional<double> matrix_f32_ops_per_second;   // by oneDNN's micro-kernels, where it has them
  std::optional<double> matrix_bf16_ops_per_second;  // the same: matrix units, where the processor has them

  // The highest of what the processor has for a compute type's name; nothing for a name that is not known.
  std::optional<double> OpsPerSecond(std::string_view compute_type) const;
  nlohmann::json ToJson() const;
};

// About two seconds, and 1 GiB of memory meanwhile.
MachineLimits MeasureMachineLimits(int64_t num_threads);

// Reading `num_bytes` again and again: what weights of that size can be read with, wherever they stay between steps.
double MeasureReadBandwidth(ThreadTeam& team, int64_t num_bytes);

}  // namespace quire
