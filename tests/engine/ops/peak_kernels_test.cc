#include "engine/ops/peak_kernels.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <string>

#include "engine/tensor/buffer.h"

namespace quire::testing {

TEST_CASE("ReadAll reads every word once, in any number of streams", "[ops]") {
  constexpr int64_t kNumWords = 8192;
  const Buffer buffer(kNumWords * 8);
  auto* words = buffer.as<uint64_t>();
  uint64_t sum = 0;
  for (int64_t i = 0; i < kNumWords; ++i) {
    words[i] = static_cast<uint64_t>(i) * 0x9e3779b97f4a7c15U;
    sum += words[i];
  }
  for (const int num_streams : {1, 2, 4, 8}) {
    INFO(num_streams << " streams");
    CHECK(ReadAll(buffer.data(), buffer.size_bytes(), num_streams) == sum);
  }
}

TEST_CASE("Peak loops do as many operations as they are told to", "[ops]") {
  for (const PeakOp op : {PeakOp::kF32MulAdd, PeakOp::kBf16Dot, PeakOp::kInt8Dot}) {
    INFO("operation " << static_cast<int>(op));
    const int64_t ops_per_iteration = RunPeakLoop(op, 1);
    CHECK(ops_per_iteration >= 2 * 4 * 12);  // twelve chains of four lanes, the least that is compiled
    CHECK(RunPeakLoop(op, 1000) == 1000 * ops_per_iteration);
  }
  CHECK(RunPeakLoop(PeakOp::kInt8Dot, 1) == 4 * RunPeakLoop(PeakOp::kF32MulAdd, 1));
  CHECK(!std::string(PeakTargetName()).empty());
}

}  // namespace quire::testing
