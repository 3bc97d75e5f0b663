#include "engine/ops/paged_attention.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <catch2/generators/catch_generators_range.hpp>
#include <cmath>
#include <random>

#include "tests/engine/ops/attention_harness.h"

namespace quire::testing {
namespace {

// Outputs are means of values of size about 1; a dot product of head_dim terms and an exponential stand before them.
double F32Tolerance(const AttentionShape& shape) { return 1e-6 * std::sqrt(static_cast<double>(shape.head_dim)); }
// bfloat16 keeps 8 bits: keys move a score by up to 2^-8 |q||k| scale, values by 2^-8.
constexpr double kBf16Tolerance = 0.03;

const AttentionShape kShapes[] = {
    {.num_heads = 4, .num_kv_heads = 4, .head_dim = 8},
    {.num_heads = 9, .num_kv_heads = 3, .head_dim = 64, .score_scale = 0.125F},
    {.num_heads = 6, .num_kv_heads = 1, .head_dim = 16, .block_size = 32, .score_scale = 0.25F},
    {.num_heads = 16, .num_kv_heads = 1, .head_dim = 40, .score_scale = 0.158F},
    {.num_heads = 8, .num_kv_heads = 2, .head_dim = 128, .block_size = 64, .score_scale = 0.088F},
    {.num_heads = 2, .num_kv_heads = 1, .head_dim = 6, .score_scale = 0.4F, .num_threads = 1},
};

// Each head's part of each row to the nearest of 255 steps, of which the greatest is the part's greatest element.
void RoundToInt8(int64_t head_dim, Matrix& rows) {
  for (std::vector<float>& row : rows) {
    for (auto head = row.begin(); head != row.end(); head += head_dim) {
      float max = 0;
      for (auto x = head; x != head + head_dim; ++x) max = std::max(max, std::abs(*x));
      for (auto x = head; x != head + head_dim; ++x) *x = std::nearbyint(*x * (127 / max)) * (max / 127);
    }
  }
}

}  // namespace

TEST_CASE("attention equals the formula across block and tile boundaries", "[ops]") {
  const AttentionShape shape = kShapes[GENERATE(Catch::Generators::range(0, 6))];
  const int64_t num_tokens = GENERATE(1, 2, 15, 16, 17, 64, 65, 255, 256, 257, 300, 600);
  const AttentionSequence sequence = RandomSequence(shape, num_tokens, num_tokens);
  AttentionHarness harness(shape, {sequence});
  CHECK(LargestDifference(harness.Whole(), ReferenceAttention(shape, sequence)) <= F32Tolerance(shape));
}

TEST_CASE("a bf16 cache stays within bf16's error of the formula", "[ops]") {
  AttentionShape shape = kShapes[GENERATE(Catch::Generators::range(0, 6))];
  shape.kv_type = DType::kBF16;
  shape.score_scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  const int64_t num_tokens = GENERATE(1, 17, 300);
  const AttentionSequence sequence = RandomSequence(shape, num_tokens, num_tokens);
  AttentionHarness harness(shape, {sequence});
  CHECK(LargestDifference(harness.Whole(), ReferenceAttention(shape, sequence)) <= kBf16Tolerance);
}

TEST_CASE("an int8 cache gives what the formula gives for keys and values rounded to its steps", "[ops]") {
  AttentionShape shape = kShapes[GENERATE(Catch::Generators::range(0, 6))];
  shape.kv_type = DType::kInt8;
  shape.score_scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  const int64_t num_tokens = GENERATE(1, 17, 300, 600);
  const AttentionSequence sequence = RandomSequence(shape, num_tokens, num_tokens);
  AttentionSequence rounded = sequence;
  for (Matrix* rows : {&rounded.keys, &rounded.values}) RoundToInt8(shape.head_dim, *rows);
  AttentionHarness harness(shape, {sequence});
  CHECK(LargestDifference(harness.Whole(), ReferenceAttention(shape, rounded)) <= F32Tolerance(shape));
}

TEST_CASE("bf16 matmuls of a prompt keep 16 bits of its queries and weights", "[ops]") {
  AttentionShape shape = kShapes[GENERATE(Catch::Generators::range(0, 6))];
  shape.kv_type = GENERATE(DType::kBF16, DType::kInt8);
  shape.score_scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  const int64_t num_tokens = GENERATE(11, 17, 64, 255, 300, 600);
  const AttentionSequence sequence = RandomSequence(shape, num_tokens, num_tokens);
  AttentionHarness in_bf16(shape, {sequence});
  if (!in_bf16.UseMatmuls(DType::kBF16)) SKIP("this processor has no bf16 micro-kernels");
  // The rounding of head_dim products of size about 1 / sqrt(head_dim); one bf16 number each would be 100 times as far.
  const double tolerance = std::ldexp(std::sqrt(static_cast<double>(shape.head_dim)), -16);
  INFO("head_dim " << shape.head_dim << ", " << num_tokens << " tokens, KV " << ToString(shape.kv_type));
  CHECK(LargestDifference(in_bf16.Whole(), AttentionHarness(shape, {sequence}).Whole()) <= tolerance);
}

TEST_CASE("an f32 cache is never read in bf16", "[ops]") {
  const AttentionShape shape = kShapes[1];
  const AttentionSequence sequence = RandomSequence(shape, 40, 1);
  AttentionHarness harness(shape, {sequence});
  CHECK_FALSE(harness.UseMatmuls(DType::kBF16));
  CHECK(LargestDifference(harness.Whole(), AttentionHarness(shape, {sequence}).Whole()) == 0.0);
}

TEST_CASE("a chunked sequence gives the same bits as a whole one", "[ops]") {
  AttentionShape shape = kShapes[GENERATE(Catch::Generators::range(0, 6))];
  shape.kv_type = GENERATE(DType::kF32, DType::kBF16, DType::kInt8);
  const int64_t chunk = GENERATE(1, 7, 64, 100);
  constexpr int64_t kTokens = 530;
  const AttentionSequence sequence = RandomSequence(shape, kTokens, 11);
  const Matrix whole = AttentionHarness(shape, {sequence}).Whole();
  AttentionHarness harness(shape, {sequence});
  Matrix chunked;
  for (int64_t begin = 0; begin < kTokens; begin += chunk) {
    for (auto& row : harness.Step({begin}, {std::min(begin + chunk, kTokens)})) chunked.push_back(std::move(row));
  }
  CHECK(LargestDifference(chunked, whole) == 0.0);
}

TEST_CASE("a ragged batch of prefills and decodes gives each sequence what it gets alone, in bits", "[ops]") {
  AttentionShape shape = kShapes[1];
  shape.kv_type = GENERATE(DType::kF32, DType::kBF16, DType::kInt8);
  const std::vector<int64_t> lengths = {300, 1, 40, 257, 90, 530, 17};
  const std::vector<int64_t> begins = {299, 0, 0, 256, 30, 520, 16};  // decodes, chunks and whole prefills
  std::vector<AttentionSequence> sequences;
  Matrix alone;
  for (size_t i = 0; i < lengths.size(); ++i) {
    sequences.push_back(RandomSequence(shape, lengths[i], i));
    const Matrix rows = AttentionHarness(shape, {sequences[i]}).Whole();
    alone.insert(alone.end(), rows.begin() + begins[i], rows.end());
  }
  AttentionHarness harness(shape, sequences);
  harness.Step(std::vector<int64_t>(lengths.size(), 0), begins);
  CHECK(LargestDifference(harness.Step(begins, lengths), alone) == 0.0);
}

TEST_CASE("splitting keys among threads does not change a bit", "[ops]") {
  AttentionShape shape = kShapes[1];
  constexpr int64_t kTokens = 2100;
  const AttentionSequence sequence = RandomSequence(shape, kTokens, 5);
  Matrix rows[2];
  for (const int64_t num_threads : {1, 2}) {
    shape.num_threads = num_threads;  // one thread splits nothing: there are items enough for it
    AttentionHarness harness(shape, {sequence});
    harness.Step({0}, {kTokens - 1});
    rows[num_threads - 1] = harness.Step({kTokens - 1}, {kTokens});
  }
  CHECK(LargestDifference(rows[0], rows[1]) == 0.0);
}

TEST_CASE("large scores do not overflow", "[ops]") {
  const AttentionShape shape = {.num_heads = 2, .num_kv_heads = 1, .head_dim = 16, .score_scale = 100.0F};
  const AttentionSequence sequence = RandomSequence(shape, 300, 1);
  AttentionHarness harness(shape, {sequence});
  CHECK(LargestDifference(harness.Whole(), ReferenceAttention(shape, sequence)) <= 1e-2);
}

TEST_CASE("attention's memory does not grow with the square of the length", "[ops]") {
  AttentionConfig config = {.num_heads = 9,
                            .layout = {.num_kv_heads = 3, .head_dim = 64, .block_size = 16},
                            .max_seq_len = 512,
                            .max_num_seqs = 1,
                            .max_tokens = 512,
                            .num_threads = 2};
  const int64_t scratch = PagedAttention::ScratchBytesFor(config);
  const int64_t shared = PagedAttention::BytesFor(config);
  config.max_seq_len *= 16;
  CHECK(PagedAttention::ScratchBytesFor(config) == scratch);
  CHECK(PagedAttention::BytesFor(config) == 16 * shared);
}

}  // namespace quire::testing
