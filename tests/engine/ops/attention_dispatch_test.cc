// Attention on the instruction sets that other processors have.

#include <algorithm>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>

#include "tests/engine/ops/attention_harness.h"
#include "tests/engine/ops/forced_target.h"

namespace quire::testing {
namespace {

constexpr int64_t kTokens = 300;
// Rows enough at once for the micro-kernels, whatever the group.
constexpr int64_t kBegin = 260;

// The last tokens one at a time after the others at once, as a prompt and its answer come.
Matrix TokenByToken(const AttentionShape& shape, const AttentionSequence& sequence) {
  AttentionHarness harness(shape, {sequence});
  Matrix rows = harness.Step({0}, {kBegin});
  for (int64_t token = kBegin; token < kTokens; ++token) rows.push_back(harness.Step({token}, {token + 1}).front());
  return rows;
}

}  // namespace

TEST_CASE("attention equals the formula on every instruction set", "[ops]") {
  const int64_t target = GENERATE(int64_t{HWY_SSE2}, int64_t{HWY_AVX2}, int64_t{HWY_AVX3});
  if (!ForcedTarget::IsPossible(target)) SKIP("this processor does not have the instructions");
  AttentionShape shape = GENERATE(AttentionShape{.num_heads = 9, .num_kv_heads = 3, .head_dim = 64},
                                  AttentionShape{.num_heads = 5, .num_kv_heads = 1, .head_dim = 22, .block_size = 32},
                                  AttentionShape{.num_heads = 4, .num_kv_heads = 2, .head_dim = 128});
  shape.kv_type = GENERATE(DType::kF32, DType::kBF16, DType::kInt8);
  shape.score_scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  const AttentionSequence sequence = RandomSequence(shape, kTokens, 3);
  INFO("target " << hwy::TargetName(target) << ", KV " << ToString(shape.kv_type));
  const ForcedTarget forced(target);
  const Matrix whole = AttentionHarness(shape, {sequence}).Whole();
  const Matrix token_by_token = TokenByToken(shape, sequence);
  // What storing may move, as in paged_attention_test; an int8 step is at most 1 / 127 of a row's greatest element.
  const double tolerance = shape.kv_type == DType::kF32 ? 1e-6 * std::sqrt(static_cast<double>(shape.head_dim)) : 0.03;
  CHECK(LargestDifference(token_by_token, ReferenceAttention(shape, sequence)) <= tolerance);
  // The baseline has no fused multiply-add, and its processors no micro-kernels.
  if (target != HWY_SSE2) CHECK(LargestDifference(token_by_token, whole) == 0.0);
}

TEST_CASE("attention gives the same bits on every instruction set with fused multiply-adds", "[ops]") {
  AttentionShape shape = {.num_heads = 5, .num_kv_heads = 1, .head_dim = 22};
  shape.kv_type = GENERATE(DType::kF32, DType::kBF16, DType::kInt8);
  shape.score_scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  const AttentionSequence sequence = RandomSequence(shape, kTokens, 5);
  Matrix expected;
  for (const int64_t target : {HWY_AVX2, HWY_AVX3, HWY_AVX3_DL}) {
    if (!ForcedTarget::IsPossible(target)) continue;
    const ForcedTarget forced(target);
    const Matrix rows = AttentionHarness(shape, {sequence}).Whole();
    if (expected.empty()) expected = rows;
    INFO(hwy::TargetName(target) << ", KV " << ToString(shape.kv_type));
    CHECK(LargestDifference(rows, expected) == 0.0);
  }
}

}  // namespace quire::testing
