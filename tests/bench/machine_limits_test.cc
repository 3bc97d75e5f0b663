#include "bench/machine_limits.h"

#include <catch2/catch_test_macros.hpp>

namespace quire::testing {

TEST_CASE("A compute type's limit is the higher of vector and matrix units", "[bench]") {
  MachineLimits limits = {.num_threads = 2,
                          .vector_target = "AVX2",
                          .memory_bytes_per_second = 3e10,
                          .f32_ops_per_second = 4e11,
                          .bf16_ops_per_second = 2e11,
                          .int8_ops_per_second = 16e11,
                          .matrix_f32_ops_per_second = 3e11,
                          .matrix_bf16_ops_per_second = std::nullopt};
  CHECK(limits.OpsPerSecond("f32") == 4e11);
  CHECK(limits.OpsPerSecond("bf16") == 2e11);
  CHECK(limits.OpsPerSecond("int8") == 16e11);
  CHECK(limits.OpsPerSecond("int4") == std::nullopt);
  CHECK(limits.ToJson()["memory_gigabytes_per_second"] == 30);
  CHECK(limits.ToJson()["matrix_bf16_gigaops_per_second"].is_null());
  limits.matrix_bf16_ops_per_second = 30e11;
  CHECK(limits.OpsPerSecond("bf16") == 30e11);
  CHECK(limits.ToJson()["matrix_bf16_gigaops_per_second"] == 3000);
}

TEST_CASE("Read bandwidth is measured for any size", "[bench]") {
  ThreadTeam team(2, 0);
  for (const int64_t num_bytes : {int64_t{1}, int64_t{3} << 20}) CHECK(MeasureReadBandwidth(team, num_bytes) > 0);
}

}  // namespace quire::testing
