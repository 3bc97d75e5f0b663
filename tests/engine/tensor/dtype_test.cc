#include "engine/tensor/dtype.h"

#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <cmath>
#include <cstdint>
#include <limits>

namespace quire {
namespace {

float Rounded(float value) { return ToFloat(ToBFloat16(value)); }

TEST_CASE("bfloat16 values survive the way to f32 and back") {
  for (uint32_t bits = 0; bits < 65536; ++bits) {
    const BFloat16 value{static_cast<uint16_t>(bits)};
    if (std::isnan(ToFloat(value))) {
      REQUIRE(std::isnan(Rounded(ToFloat(value))));
    } else {
      REQUIRE(ToBFloat16(ToFloat(value)).bits == bits);
    }
  }
}

TEST_CASE("f32 rounds to the nearest bfloat16, ties to even") {
  const float step = std::ldexp(1.0F, -7);  // between neighbours of 1
  CHECK(Rounded(1.0F + 0.49F * step) == 1.0F);
  CHECK(Rounded(1.0F + 0.51F * step) == 1.0F + step);
  CHECK(Rounded(1.0F + 0.5F * step) == 1.0F);
  CHECK(Rounded(1.0F + 1.5F * step) == 1.0F + 2 * step);
  CHECK(Rounded(-1.0F - 1.5F * step) == -1.0F - 2 * step);
}

TEST_CASE("the ends of the range") {
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(Rounded(infinity) == infinity);
  CHECK(Rounded(-infinity) == -infinity);
  CHECK(Rounded(std::numeric_limits<float>::max()) == infinity);
  CHECK(std::signbit(Rounded(-0.0F)));
  CHECK(std::isnan(Rounded(std::numeric_limits<float>::quiet_NaN())));
  // A NaN whose set bits are all cut off must not become an infinity.
  CHECK(std::isnan(Rounded(std::bit_cast<float>(0x7f800001U))));
}

TEST_CASE("sizes and names") {
  CHECK(SizeOf(DType::kF32) == 4);
  CHECK(SizeOf(DType::kBF16) == 2);
  CHECK(ToString(DType::kBF16) == "bf16");
}

}  // namespace
}  // namespace quire
