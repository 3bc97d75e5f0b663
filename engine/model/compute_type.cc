#include "engine/model/compute_type.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <format>
#include <limits>

#include "engine/base/status.h"
#include "engine/ops/packed_linear.h"

namespace quire {
namespace {

constexpr std::array<int64_t, 3> kMeasuredRows = {1, 16, 256};

// The best of a few runs, in seconds.
double MeasureForward(const PackedLinear& linear, DType compute_type, int64_t rows, ThreadTeam& team) {
  constexpr int kRuns = 5;
  const Activation input(rows, linear.in_features(), compute_type);
  const Buffer output(rows * linear.out_stride() * SizeOf(DType::kF32));
  const MatrixView<float> out(output.as<float>(), rows, linear.out_features(), linear.out_stride());
  double best = std::numeric_limits<double>::infinity();
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    team.Run([&](Worker& worker) {
      linear.Forward(worker, input, out);
      Brgemm::ReleaseThread();
    });
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return best;
}

// The geometric mean over the numbers of rows, in seconds. Timing does not depend on the weights' values.
double MeasureLayer(const ModelConfig& config, DType weight_type, DType compute_type, ThreadTeam& team) {
  const int64_t out_features = 2 * config.intermediate_size;
  Arena arena(PackedLinear::BytesFor(out_features, config.hidden_size, weight_type) + Arena::kAlignment);
  const PackedLinear linear(out_features, config.hidden_size, weight_type, compute_type, LinearOutput::kOverwrite,
                            &arena);
  double log_sum = 0;
  for (const int64_t rows : kMeasuredRows) log_sum += std::log(MeasureForward(linear, compute_type, rows, team));
  return std::exp(log_sum / kMeasuredRows.size());
}

}  // namespace

absl::StatusOr<ComputeTypeChoice> ChooseComputeType(std::string_view requested, const ModelConfig& config,
                                                    DType weight_type, ThreadTeam& team) {
  const bool has_bf16 = PackedLinear::Supports(weight_type, DType::kBF16);
  if (requested == "f32") return ComputeTypeChoice{DType::kF32, "asked for"};
  if (requested == "bf16") {
    if (has_bf16) return ComputeTypeChoice{DType::kBF16, "asked for"};
    return InvalidArgument("compute_type", requested,
                           weight_type == DType::kF32 ? "f32 or auto: f32 weights are computed in f32"
                                                      : "f32 or auto: this processor has no bf16 matmul kernels");
  }
  if (!has_bf16) {
    return ComputeTypeChoice{DType::kF32, weight_type == DType::kF32 ? "f32 weights are computed in f32"
                                                                     : "this processor has no bf16 matmul kernels"};
  }
  const double f32 = MeasureLayer(config, weight_type, DType::kF32, team);
  const double bf16 = MeasureLayer(config, weight_type, DType::kBF16, team);
  const DType fastest = bf16 < f32 ? DType::kBF16 : DType::kF32;
  return ComputeTypeChoice{fastest, std::format("faster at load: f32 {:.2f} ms, bf16 {:.2f} ms, a gate/up layer's "
                                                "geometric mean over 1, 16 and 256 rows",
                                                f32 * 1e3, bf16 * 1e3)};
}

}  // namespace quire
