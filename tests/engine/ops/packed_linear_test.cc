#include "engine/ops/packed_linear.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>
#include <random>
#include <vector>

#include "engine/base/math.h"

namespace quire::testing {
namespace {

struct Case {
  int64_t out_features;
  int64_t in_features;
};

const Case kCases[] = {{32, 64}, {33, 2}, {960, 576}, {7, 130}, {576, 1536}};

std::vector<float> RandomValues(int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::normal_distribution<float> normal;
  std::vector<float> values(count);
  for (float& value : values) value = normal(random);
  return values;
}

struct Fixture {
  Fixture(const Case& shape, DType weight_type, DType compute_type, LinearOutput output, int64_t num_threads = 2)
      : weights(RandomValues(shape.out_features * shape.in_features, 1)),
        arena(PackedLinear::BytesFor(shape.out_features, shape.in_features, weight_type) + Arena::kAlignment),
        linear(shape.out_features, shape.in_features, weight_type, compute_type, output, &arena),
        compute_type(compute_type),
        team(num_threads, PackedLinear::ScratchBytesFor(shape.in_features)) {
    for (int64_t panel = 0; panel < linear.num_panels(); ++panel) {
      const int64_t first = panel * kPanelWidth;
      const int64_t count = std::min(kPanelWidth, shape.out_features - first);
      linear.PackPanel(panel, {weights.data() + first * shape.in_features, count, shape.in_features});
    }
  }

  // Rows of x W^T on top of `initial`.
  std::vector<float> Forward(const std::vector<float>& x, int64_t rows, float initial) {
    const Activation input(rows, linear.in_features(), compute_type);
    for (int64_t row = 0; row < rows; ++row) {
      std::copy_n(x.data() + row * linear.in_features(), linear.in_features(), input.f32(rows).row_data(row));
      input.FinishRow(row);
    }
    std::vector<float> out(rows * linear.out_stride(), initial);
    team.Run([&](Worker& worker) {
      linear.Forward(worker, input, {out.data(), rows, linear.out_features(), linear.out_stride()});
      Brgemm::ReleaseThread();
    });
    return out;
  }

  std::vector<float> weights;
  Arena arena;
  PackedLinear linear;
  DType compute_type;
  ThreadTeam team;
};

// The worst error of a result, as a share of |x| |w| + |initial| for each element: what rounding can be held against.
double WorstRelativeError(const Fixture& fixture, const std::vector<float>& x, int64_t rows, float initial,
                          const std::vector<float>& out) {
  const int64_t k = fixture.linear.in_features();
  double worst = 0;
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t n = 0; n < fixture.linear.out_features(); ++n) {
      double sum = initial;
      double x_norm = 0;
      double w_norm = 0;
      for (int64_t i = 0; i < k; ++i) {
        const double a = x[row * k + i];
        const double w = fixture.weights[n * k + i];
        sum += a * w;
        x_norm += a * a;
        w_norm += w * w;
      }
      const double size = std::sqrt(x_norm * w_norm) + std::abs(initial);
      const double error = std::abs(out[row * fixture.linear.out_stride() + n] - sum) / size;
      if (!(error <= worst)) worst = error;
    }
  }
  return worst;
}

// By Cauchy and Schwarz, rounding the factors to a relative u moves a sum of products by at most u |x| |w| for each
// factor that is rounded; sums in f32 add little.
double ToleranceFor(DType weight_type, DType compute_type) {
  constexpr double kF32Epsilon = 1.2e-7;
  constexpr double kBf16Rounding = 1.0 / 256;
  if (weight_type == DType::kF32) return 8 * kF32Epsilon;
  return 1.01 * kBf16Rounding * (compute_type == DType::kF32 ? 1 : 2);
}

}  // namespace

TEST_CASE("a packed linear layer equals the matrix product, for every kernel and number of rows", "[ops]") {
  const Case shape = kCases[GENERATE(Catch::Generators::range(0, 5))];
  const auto [weight_type, compute_type] = GENERATE(
      table<DType, DType>({{DType::kF32, DType::kF32}, {DType::kBF16, DType::kF32}, {DType::kBF16, DType::kBF16}}));
  const LinearOutput output = GENERATE(LinearOutput::kOverwrite, LinearOutput::kAccumulate);
  if (!PackedLinear::Supports(weight_type, compute_type)) SKIP("this processor has no bf16 matmul kernels");
  Fixture fixture(shape, weight_type, compute_type, output);
  const float initial = output == LinearOutput::kAccumulate ? 0.5F : 0.0F;
  for (const int64_t rows : {1, 2, 3, 4, 5, 31, 32, 77, 130}) {
    const std::vector<float> x = RandomValues(rows * shape.in_features, rows);
    const std::vector<float> out = fixture.Forward(x, rows, output == LinearOutput::kAccumulate ? 0.5F : 1e6F);
    INFO(shape.out_features << " x " << shape.in_features << ", rows " << rows);
    CHECK(WorstRelativeError(fixture, x, rows, initial, out) <= ToleranceFor(weight_type, compute_type));
  }
}

TEST_CASE("computed in f32, a row's bits do not depend on how many rows are computed with it", "[ops]") {
  const Case shape = kCases[GENERATE(Catch::Generators::range(0, 5))];
  const DType weight_type = GENERATE(DType::kF32, DType::kBF16);
  const LinearOutput output = GENERATE(LinearOutput::kOverwrite, LinearOutput::kAccumulate);
  Fixture fixture(shape, weight_type, DType::kF32, output);
  constexpr int64_t kRows = 77;
  const std::vector<float> x = RandomValues(kRows * shape.in_features, 3);
  const std::vector<float> all = fixture.Forward(x, kRows, 0.25F);
  const int64_t stride = fixture.linear.out_stride();
  for (const int64_t rows : {1, 3, 4, 5, 33}) {
    const std::vector<float> some = fixture.Forward(x, rows, 0.25F);
    INFO("rows " << rows);
    CHECK(std::equal(some.begin(), some.begin() + rows * stride, all.begin()));
  }
}

TEST_CASE("unpacked rows are the weights as stored", "[ops]") {
  const Case shape = {70, 96};
  const DType weight_type = GENERATE(DType::kF32, DType::kBF16);
  const Fixture fixture(shape, weight_type, DType::kF32, LinearOutput::kOverwrite);
  std::vector<float> row(shape.in_features);
  for (const int64_t n : {0, 31, 32, 69}) {
    fixture.linear.UnpackRow(n, row);
    for (int64_t k = 0; k < shape.in_features; ++k) {
      const float weight = fixture.weights[n * shape.in_features + k];
      CHECK(row[k] == (weight_type == DType::kF32 ? weight : ToFloat(ToBFloat16(weight))));
    }
  }
}

TEST_CASE("a packed linear layer takes the bytes it says", "[ops]") {
  CHECK(PackedLinear::BytesFor(576, 1536, DType::kF32) == 576 * 1536 * 4);
  CHECK(PackedLinear::BytesFor(576, 1536, DType::kBF16) == 576 * 1536 * 2);
  CHECK(PackedLinear::BytesFor(33, 2, DType::kF32) == 64 * 2 * 4);
}

}  // namespace quire::testing
