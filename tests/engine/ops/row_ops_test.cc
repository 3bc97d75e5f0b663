#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "engine/ops/activation.h"
#include "engine/ops/convert.h"
#include "engine/ops/rms_norm.h"
#include "engine/ops/rope.h"
#include "engine/ops/row_kernels.h"
#include "tests/engine/ops/forced_target.h"

namespace quire::testing {
namespace {

std::vector<float> RandomValues(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

}  // namespace

TEST_CASE("RMSNorm equals the formula at every width", "[ops]") {
  ThreadTeam team(2, RmsNormScratchBytes(576));
  constexpr float kEpsilon = 1e-5F;
  for (const int64_t width : {1, 3, 16, 17, 576}) {
    constexpr int64_t kRows = 5;
    const std::vector<float> x = RandomValues(kRows * width, width);
    const std::vector<float> weight = RandomValues(width, 7);
    const Activation out(kRows, width, InputForms{});
    team.Run([&](Worker& worker) { RmsNorm(worker, {x.data(), kRows, width}, weight.data(), kEpsilon, out); });
    for (int64_t row = 0; row < kRows; ++row) {
      double mean_square = 0;
      for (int64_t i = 0; i < width; ++i) mean_square += std::pow(x[row * width + i], 2) / static_cast<double>(width);
      for (int64_t i = 0; i < width; ++i) {
        const double expected = x[row * width + i] / std::sqrt(mean_square + kEpsilon) * weight[i];
        CHECK(std::abs(out.f32(kRows).row(row)[i] - expected) <= 1e-5 * (1 + std::abs(expected)));
      }
    }
  }
}

TEST_CASE("RMSNorm of chosen rows equals the same rows of all", "[ops]") {
  ThreadTeam team(1, RmsNormScratchBytes(33));
  constexpr int64_t kWidth = 33;
  const std::vector<float> x = RandomValues(6 * kWidth, 1);
  const std::vector<float> weight = RandomValues(kWidth, 2);
  const Activation all(6, kWidth, InputForms{});
  const Activation some(2, kWidth, InputForms{});
  const std::vector<int64_t> rows = {1, 4};
  team.Run([&](Worker& worker) {
    RmsNorm(worker, {x.data(), 6, kWidth}, weight.data(), 1e-5F, all);
    RmsNormRows(worker, {x.data(), 6, kWidth}, rows, weight.data(), 1e-5F, some);
  });
  for (size_t i = 0; i < rows.size(); ++i) {
    for (int64_t c = 0; c < kWidth; ++c) CHECK(some.f32(2).row(i)[c] == all.f32(6).row(rows[i])[c]);
  }
}

TEST_CASE("rows give the same bits on every instruction set with fused multiply-adds", "[ops]") {
  constexpr int64_t kRows = 20;
  const int64_t width = GENERATE(3, 40, 576);
  const std::vector<float> up = RandomValues(kRows * width, 4);
  std::vector<float> expected;
  for (const int64_t target : {HWY_AVX2, HWY_AVX3, HWY_AVX3_DL}) {
    if (!ForcedTarget::IsPossible(target)) continue;
    const ForcedTarget forced(target);
    std::vector<float> out = RandomValues(kRows * width, 3);
    for (int64_t row = 0; row < kRows; ++row) out.push_back(SumOfSquares(out.data() + row * width, width));
    SiluMulRows(out.data(), up.data(), width, kRows, width);
    if (expected.empty()) expected = out;
    INFO("width " << width << ", " << hwy::TargetName(target));
    CHECK(out == expected);
  }
}

TEST_CASE("SiLU times up equals the formula, also for large inputs", "[ops]") {
  constexpr int64_t kRows = 3;
  for (const int64_t width : {1, 15, 32, 600}) {
    const int64_t stride = 2 * width;
    const std::vector<float> up = RandomValues(kRows * stride, width);
    std::vector<float> gate = RandomValues(kRows * stride, width + 1);
    gate[0] = -200.0F;
    gate[stride] = 200.0F;
    std::vector<float> out = gate;
    SiluMulRows(out.data(), up.data(), stride, kRows, width);
    for (int64_t i = 0; i < kRows * stride; ++i) {
      const double x = gate[i];
      const double expected = i % stride < width ? x / (1 + std::exp(-x)) * up[i] : x;
      CHECK(std::abs(out[i] - expected) <= 1e-5 * (1 + std::abs(expected)));
    }
  }
}

TEST_CASE("RoPE rotates pairs by position times frequency", "[ops]") {
  const int64_t dim = GENERATE(2, 8, 30, 64, 70);
  ThreadTeam team(1, 0);
  std::vector<float> factors(dim / 2, 1.0F);
  for (int64_t i = 2; i < dim / 2; ++i) factors[i] = i == 2 ? 2.0F : 4.0F;
  const std::vector<int64_t> positions = {0, 1, 5000};
  const std::vector<float> head = RandomValues(dim + 2, 4);  // two elements past rotary_dim
  for (const RopeStyle style : {RopeStyle::kAdjacentPairs, RopeStyle::kHalves}) {
    Rope rope({.rotary_dim = dim, .theta = 10000.0, .style = style, .frequency_factors = factors}, 3);
    team.Run([&](Worker& worker) { rope.SetPositions(worker, positions); });
    for (size_t token = 0; token < positions.size(); ++token) {
      std::vector<float> rotated = head;
      rope.Rotate(static_cast<int64_t>(token), rotated.data());
      for (int64_t i = 0; i < dim / 2; ++i) {
        const int64_t first = style == RopeStyle::kAdjacentPairs ? 2 * i : i;
        const int64_t second = style == RopeStyle::kAdjacentPairs ? 2 * i + 1 : i + dim / 2;
        const double angle = static_cast<double>(positions[token]) * std::pow(10000.0, -2.0 * i / dim) / factors[i];
        CHECK(std::abs(rotated[first] - (head[first] * std::cos(angle) - head[second] * std::sin(angle))) <= 1e-5);
        CHECK(std::abs(rotated[second] - (head[first] * std::sin(angle) + head[second] * std::cos(angle))) <= 1e-5);
      }
      CHECK(rotated[dim] == head[dim]);
      CHECK(rotated[dim + 1] == head[dim + 1]);
    }
  }
}

TEST_CASE("bf16 conversion of rows equals that of numbers", "[ops]") {
  std::vector<float> values = RandomValues(67, 1);
  values[3] = std::numeric_limits<float>::quiet_NaN();
  values[20] = std::numeric_limits<float>::infinity();
  values[21] = -0.0F;
  values[40] = 3.4e38F;  // rounds up to infinity
  std::vector<BFloat16> out(values.size());
  ConvertToBFloat16(values.data(), static_cast<int64_t>(values.size()), out.data());
  for (size_t i = 0; i < values.size(); ++i) CHECK(out[i].bits == ToBFloat16(values[i]).bits);
}

TEST_CASE("a number split into two of bf16 keeps 16 bits", "[ops]") {
  std::vector<float> values = RandomValues(67, 1);
  values[5] = 0.0F;
  values[6] = 1.0F;
  values[7] = 3.0e38F;
  constexpr float kFactor = 0.125F;
  std::vector<BFloat16> high(values.size());
  std::vector<BFloat16> low(values.size());
  SplitIntoBFloat16(values.data(), kFactor, static_cast<int64_t>(values.size()), high.data(), low.data());
  for (size_t i = 0; i < values.size(); ++i) {
    const double value = static_cast<double>(values[i]) * kFactor;
    const double sum = static_cast<double>(ToFloat(high[i])) + static_cast<double>(ToFloat(low[i]));
    CHECK(std::abs(sum - value) <= std::ldexp(std::abs(value), -16));
  }
}

TEST_CASE("bytes packed in pairs of rows are the same numbers in bf16", "[ops]") {
  constexpr int64_t kRows = 6;
  constexpr int64_t kCols = 22;
  constexpr int64_t kStride = 25;
  std::vector<int8_t> values(kRows * kCols);
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int8_t>(i * 37 % 256 - 128);
  std::vector<BFloat16> packed(kRows * kStride, ToBFloat16(7.0F));
  PackInt8Pairs(values.data(), kRows, kCols, packed.data(), kStride);
  for (int64_t row = 0; row < kRows; ++row) {
    for (int64_t col = 0; col < kStride; ++col) {
      const float expected = col < kCols ? static_cast<float>(values[row * kCols + col]) : 7.0F;
      CHECK(ToFloat(packed[(row / 2 * kStride + col) * 2 + row % 2]) == expected);
    }
  }
}

}  // namespace quire::testing
