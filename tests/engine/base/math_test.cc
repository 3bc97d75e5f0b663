#include "engine/base/math.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>

namespace quire {
namespace {

TEST_CASE("CeilDiv is the least integer not below the quotient") {
  CHECK(CeilDiv(0, 16) == 0);
  CHECK(CeilDiv(1, 16) == 1);
  CHECK(CeilDiv(16, 16) == 1);
  CHECK(CeilDiv(17, 16) == 2);
  CHECK(CeilDiv(5, 1) == 5);
  CHECK(CeilDiv<int64_t>((int64_t{1} << 40) + 1, int64_t{1} << 20) == (int64_t{1} << 20) + 1);
}

TEST_CASE("AlignUp is the least multiple not below the value") {
  CHECK(AlignUp(0, 64) == 0);
  CHECK(AlignUp(1, 64) == 64);
  CHECK(AlignUp(64, 64) == 64);
  CHECK(AlignUp(65, 64) == 128);
  CHECK(AlignUp(10, 3) == 12);
  for (int value = 0; value < 200; ++value) {
    const int aligned = AlignUp(value, 24);
    CHECK((aligned % 24 == 0 && aligned >= value && aligned - value < 24));
  }
}

}  // namespace
}  // namespace quire
