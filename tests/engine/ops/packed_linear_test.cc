#include "engine/ops/packed_linear.h"

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "engine/base/math.h"
#include "tests/engine/ops/forced_target.h"

namespace quire::testing {
namespace {

constexpr WeightType kAllTypes[] = {WeightType::kF32,  WeightType::kBF16, WeightType::kInt8,
                                    WeightType::kQ8_0, WeightType::kQ4_0, WeightType::kQ4_1};
// The last is what most processors with AVX-512 have; which of them a processor takes by itself, it is among them.
constexpr int64_t kTargets[] = {HWY_SSE2, HWY_AVX2, HWY_AVX3, HWY_AVX3_DL};
constexpr DType kInputs[] = {DType::kF32, DType::kBF16, DType::kInt8};

struct Case {
  int64_t out_features;
  int64_t in_features;
};

const Case kCases[] = {{32, 64}, {33, 32}, {1056, 32}, {7, 160}, {64, 1536}};

std::vector<float> RandomValues(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

uint16_t ToHalf(float value) {
  const auto half = static_cast<_Float16>(value);
  uint16_t bits;
  std::memcpy(&bits, &half, sizeof(bits));
  return bits;
}

float FromHalf(uint16_t bits) {
  _Float16 half;
  std::memcpy(&half, &bits, sizeof(half));
  return static_cast<float>(half);
}

// Grouped weights with random quants over their whole range, and what they mean.
struct RandomQuants {
  std::vector<uint8_t> quants;
  std::vector<uint16_t> scales;
  std::vector<uint16_t> minima;
  std::vector<float> values;

  RandomQuants(const LinearShape& shape, uint64_t seed) {
    std::mt19937_64 random(seed);
    const int64_t count = shape.out_features * shape.in_features;
    std::uniform_int_distribution<int> quant(0, HasNibbles(shape.weight_type) ? 15 : 255);
    std::uniform_real_distribution<float> real(-1, 1);
    for (int64_t group = 0; group < count / kGroupSize; ++group) {
      scales.push_back(ToHalf(real(random) * 0.01F));
      minima.push_back(ToHalf(real(random) * 0.05F));
      const float zero_point = shape.weight_type == WeightType::kQ8_0   ? 128
                               : shape.weight_type == WeightType::kQ4_0 ? 8
                                                                        : 0;
      const float minimum = shape.weight_type == WeightType::kQ4_1 ? FromHalf(minima.back()) : 0;
      for (int64_t i = 0; i < kGroupSize; ++i) {
        quants.push_back(static_cast<uint8_t>(quant(random)));
        values.push_back(FromHalf(scales.back()) * (static_cast<float>(quants.back()) - zero_point) + minimum);
      }
    }
  }
};

struct Fixture {
  Fixture(const Case& size, WeightType type, DType input, LinearOutput output = LinearOutput::kOverwrite)
      : kernels(std::make_shared<LinearKernels>(LinearShape{size.out_features, size.in_features, type, output})),
        shape(kernels->shape()),
        arena(PackedLinear::BytesFor(shape) + Arena::kAlignment),
        linear(kernels, &arena),
        team(2, PackedLinear::ScratchBytesFor(shape.in_features)) {
    if (!kernels->Supports(input)) SKIP("this processor, or the storage, has no such kernels");
    InputTypes inputs;
    inputs.fill(input);
    kernels->SetInputs(inputs);
    Pack();
  }

  void Pack() {
    const RandomQuants quants(shape, 1);
    weights = IsGrouped(shape.weight_type) ? quants.values : RandomValues(shape.out_features * shape.in_features, 1);
    const int64_t groups = shape.in_features / kGroupSize;
    for (int64_t panel = 0; panel < shape.num_panels(); ++panel) {
      const auto [first, count] = shape.FeaturesOf(panel);
      if (IsGrouped(shape.weight_type)) {
        linear.PackPanel(panel, {count, shape.in_features, quants.quants.data() + first * shape.in_features,
                                 quants.scales.data() + first * groups, quants.minima.data() + first * groups});
      } else {
        linear.PackPanel(panel,
                         MatrixView<const float>(weights.data() + first * shape.in_features, count, shape.in_features));
      }
    }
  }

  Activation Input(const std::vector<float>& x, int64_t rows) const {
    Activation input(rows, shape.in_features, InputForms::For(shape.weight_type));
    input.AddReader(*kernels);
    input.SetRows(rows);
    const auto width = static_cast<size_t>(shape.in_features);
    for (int64_t row = 0; row < rows; ++row) input.Write(row, 0, {x.data() + row * shape.in_features, width});
    return input;
  }

  // Rows of x W^T on top of `initial`.
  std::vector<float> Forward(const std::vector<float>& x, int64_t rows, float initial) {
    const Activation input = Input(x, rows);
    std::vector<float> out(rows * shape.out_stride(), initial);
    team.Run([&](Worker& worker) {
      linear.Forward(worker, input, {out.data(), rows, shape.out_features, shape.out_stride()});
      Brgemm::ReleaseThread();
    });
    return out;
  }

  std::shared_ptr<LinearKernels> kernels;
  LinearShape shape;
  Arena arena;
  PackedLinear linear;
  ThreadTeam team;
  std::vector<float> weights;  // [out_features, in_features]
};

// What a kernel reads of a value of an input row.
float AsRead(const float* group, int64_t i, DType input) {
  if (input == DType::kF32) return group[i];
  if (input == DType::kBF16) return ToFloat(ToBFloat16(group[i]));
  float largest = 0;
  for (int64_t j = 0; j < kGroupSize; ++j) largest = std::max(largest, std::abs(group[j]));
  const float scale = largest / 127.0F;
  return largest == 0 ? 0 : std::nearbyint(group[i] * (127.0F / largest)) * scale;
}

// The worst error of a result, as a share of |x| |w| + |initial| for each element: what rounding can be held against.
// Inputs are compared as the kernel reads them, so that only weights and sums are rounded here.
double WorstRelativeError(const Fixture& fixture, DType input, const std::vector<float>& x, int64_t rows, float initial,
                          const std::vector<float>& out) {
  const int64_t k = fixture.shape.in_features;
  double worst = 0;
  std::vector<double> a(k);
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t i = 0; i < k; ++i)
      a[i] = AsRead(x.data() + row * k + i / kGroupSize * kGroupSize, i % kGroupSize, input);
    for (int64_t n = 0; n < fixture.shape.out_features; ++n) {
      double sum = initial;
      double x_norm = 0;
      double w_norm = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double w = fixture.weights[n * k + i];
        sum += a[i] * w;
        x_norm += a[i] * a[i];
        w_norm += w * w;
      }
      const double size = std::sqrt(x_norm * w_norm) + std::abs(initial);
      const double error = std::abs(out[row * fixture.shape.out_stride() + n] - sum) / size;
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

// By Cauchy and Schwarz, rounding the weights to a relative u moves a sum of products by at most u |x| |w|; sums in f32
// add little. Weights of grouped types are exact but where micro-kernels in bf16 read them; a row of int8 weights is
// within half a step of 1/127 of its greatest, which for normal values is at most 5 times their mean square.
double ToleranceFor(WeightType type, DType input) {
  constexpr double kF32Epsilon = 1.2e-7;
  constexpr double kBf16Rounding = 1.0 / 256;
  double tolerance = 8 * kF32Epsilon;
  if (type == WeightType::kBF16 || (IsQuantized(type) && input == DType::kBF16)) tolerance += 1.01 * kBf16Rounding;
  if (type == WeightType::kInt8) tolerance += 5.0 / 127 / std::sqrt(12.0);
  return tolerance;
}

}  // namespace

TEST_CASE("a packed linear layer equals the matrix product, for every kernel and number of rows", "[ops]") {
  const Case size = kCases[GENERATE(Catch::Generators::range(0, 5))];
  const WeightType type = GENERATE(from_range(kAllTypes));
  const DType input = GENERATE(from_range(kInputs));
  const LinearOutput output = GENERATE(LinearOutput::kOverwrite, LinearOutput::kAccumulate);
  const int64_t target = GENERATE(from_range(kTargets));
  if (input == DType::kInt8 && !IsQuantized(type)) return;
  if (input == DType::kBF16 && type == WeightType::kF32) return;
  if (!ForcedTarget::IsPossible(target)) SKIP("this processor does not have the instructions");
  const ForcedTarget forced(target);
  Fixture fixture(size, type, input, output);
  const float initial = output == LinearOutput::kAccumulate ? 0.5F : 0.0F;
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 31, 77, 130}) {
    const std::vector<float> x = RandomValues(rows * size.in_features, rows);
    const std::vector<float> out = fixture.Forward(x, rows, output == LinearOutput::kAccumulate ? 0.5F : 1e6F);
    INFO(size.out_features << " x " << size.in_features << " " << ToString(type) << " in " << ToString(input)
                           << ", rows " << rows << ", " << hwy::TargetName(target));
    CHECK(WorstRelativeError(fixture, input, x, rows, initial, out) <= ToleranceFor(type, input));
  }
}

TEST_CASE("a row's bits do not depend on how many rows are computed with it, in one type", "[ops]") {
  const Case size = kCases[GENERATE(Catch::Generators::range(0, 5))];
  const WeightType type = GENERATE(from_range(kAllTypes));
  const DType input = GENERATE(from_range(kInputs));
  if (input == DType::kInt8 && !IsQuantized(type)) return;
  if (input == DType::kBF16 && type == WeightType::kF32) return;
  const LinearOutput output = GENERATE(LinearOutput::kOverwrite, LinearOutput::kAccumulate);
  const int64_t target = GENERATE(from_range(kTargets));
  if (!ForcedTarget::IsPossible(target)) SKIP("this processor does not have the instructions");
  // The baseline has no fused multiply-add, which oneDNN's micro-kernels use for more rows.
  if (target == HWY_SSE2 && input == DType::kF32) return;
  const ForcedTarget forced(target);
  Fixture fixture(size, type, input, output);
  constexpr int64_t kRows = 77;
  const std::vector<float> x = RandomValues(kRows * size.in_features, 3);
  const std::vector<float> all = fixture.Forward(x, kRows, 0.25F);
  const int64_t stride = fixture.shape.out_stride();
  for (const int64_t rows : {1, 2, 3, 4, 5, 6, 7, 33}) {
    const std::vector<float> some = fixture.Forward(x, rows, 0.25F);
    INFO(ToString(type) << " in " << ToString(input) << ", rows " << rows);
    CHECK(std::equal(some.begin(), some.begin() + rows * stride, all.begin()));
  }
}

TEST_CASE("a gated layer is the SiLU of one half of its products times the other", "[ops]") {
  const Case size = GENERATE(Case{64, 64}, Case{2 * 100, 96}, Case{2 * 96, 576});
  const WeightType type = GENERATE(from_range(kAllTypes));
  const DType input = GENERATE(from_range(kInputs));
  if (input == DType::kInt8 && !IsQuantized(type)) return;
  if (input == DType::kBF16 && type == WeightType::kF32) return;
  Fixture products(size, type, input);
  Fixture gated(size, type, input, LinearOutput::kSiluMul);
  const int64_t half = size.out_features / 2;
  for (const int64_t rows : {1, 5, 300}) {
    const std::vector<float> x = RandomValues(rows * size.in_features, rows);
    const std::vector<float> both = products.Forward(x, rows, 0);
    const Activation in = gated.Input(x, rows);
    const Activation out(rows, half, InputForms{});
    gated.team.Run([&](Worker& worker) {
      gated.linear.ForwardSiluMul(worker, in, rows, out);
      Brgemm::ReleaseThread();
    });
    double worst = 0;
    for (int64_t row = 0; row < rows; ++row) {
      const float* product = both.data() + row * products.shape.out_stride();
      for (int64_t i = 0; i < half; ++i) {
        const double gate = product[i];
        const double expected = gate / (1 + std::exp(-gate)) * product[half + i];
        worst = std::max(worst, std::abs(out.f32(rows).row(row)[i] - expected) / (1 + std::abs(expected)));
      }
    }
    INFO(size.out_features << " x " << size.in_features << " " << ToString(type) << " in " << ToString(input)
                           << ", rows " << rows);
    CHECK(worst <= 1e-5);
  }
}

TEST_CASE("integer dot products give the same bits on every instruction set with fused multiply-adds", "[ops]") {
  const WeightType type = GENERATE(WeightType::kInt8, WeightType::kQ8_0, WeightType::kQ4_0, WeightType::kQ4_1);
  const Case size = {96, 576};
  constexpr int64_t kRows = 7;
  const std::vector<float> x = RandomValues(kRows * size.in_features, 4);
  std::vector<float> expected;
  for (const int64_t target : {HWY_AVX2, HWY_AVX3, HWY_AVX3_DL}) {
    if (!ForcedTarget::IsPossible(target)) continue;
    const ForcedTarget forced(target);
    Fixture fixture(size, type, DType::kInt8);
    const std::vector<float> out = fixture.Forward(x, kRows, 0);
    if (expected.empty()) expected = out;
    INFO(ToString(type) << ", " << hwy::TargetName(target));
    CHECK(out == expected);
  }
}

TEST_CASE("unpacked rows are the weights as stored", "[ops]") {
  const Case size = {70, 96};
  const WeightType type = GENERATE(from_range(kAllTypes));
  const Fixture fixture(size, type, IsQuantized(type) ? DType::kInt8 : DType::kF32);
  std::vector<float> row(size.in_features);
  for (const int64_t n : {0, 31, 32, 69}) {
    fixture.linear.UnpackRow(n, row);
    const float* weights = fixture.weights.data() + n * size.in_features;
    float largest = 0;
    for (int64_t k = 0; k < size.in_features; ++k) largest = std::max(largest, std::abs(weights[k]));
    for (int64_t k = 0; k < size.in_features; ++k) {
      if (type == WeightType::kInt8) {
        CHECK(std::abs(row[k] - weights[k]) <= largest / 127 * 0.5001F);
      } else {
        CHECK(row[k] == (type == WeightType::kBF16 ? ToFloat(ToBFloat16(weights[k])) : weights[k]));
      }
    }
  }
}

TEST_CASE("a packed linear layer takes the bytes it says", "[ops]") {
  const auto bytes = [](WeightType type, int64_t out_features = 576, int64_t in_features = 1536) {
    return PackedLinear::BytesFor({out_features, in_features, type});
  };
  CHECK(bytes(WeightType::kF32) == 576 * 1536 * 4);
  CHECK(bytes(WeightType::kBF16) == 576 * 1536 * 2);
  CHECK(bytes(WeightType::kInt8) == 576 * 1536 + 576 * 4);
  CHECK(bytes(WeightType::kQ8_0) == 576 * 1536 / 32 * 34);
  CHECK(bytes(WeightType::kQ4_0) == 576 * 1536 / 32 * 18);
  CHECK(bytes(WeightType::kQ4_1) == 576 * 1536 / 32 * 20);
  CHECK(bytes(WeightType::kF32, 33, 2) == 64 * 2 * 4);
}

}  // namespace quire::testing
