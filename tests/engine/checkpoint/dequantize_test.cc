#include <bit>
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "tests/support/quantize.h"

namespace quire {
namespace {

std::vector<std::byte> Bytes(const std::vector<uint8_t>& values) {
  std::vector<std::byte> bytes;
  for (const uint8_t value : values) bytes.push_back(std::byte{value});
  return bytes;
}

std::vector<float> Dequantized(StorageType type, std::span<const std::byte> bytes) {
  const StorageBlock block = BlockOf(type);
  std::vector<float> out(bytes.size() / block.num_bytes * block.num_elements);
  Dequantize(type, bytes, out);
  return out;
}

TEST_CASE("F32 is copied bit by bit") {
  CHECK(Dequantized(StorageType::kF32, Bytes({0, 0, 0x80, 0x3f, 0, 0, 0, 0xc0})) == std::vector<float>{1.0F, -2.0F});
}

TEST_CASE("BF16 is the upper half of an f32") {
  CHECK(Dequantized(StorageType::kBF16, Bytes({0x80, 0x3f, 0x49, 0xc0})) == std::vector<float>{1.0F, -3.140625F});
}

TEST_CASE("F16 known values") {
  const std::vector<float> values = Dequantized(
      StorageType::kF16, Bytes({0x00, 0x3c, 0x00, 0xc0, 0xff, 0x7b, 0x01, 0x00, 0x00, 0x04, 0x00, 0x7c, 0x00, 0x80}));
  CHECK(values[0] == 1.0F);
  CHECK(values[1] == -2.0F);
  CHECK(values[2] == 65504.0F);
  CHECK(values[3] == std::ldexp(1.0F, -24));  // the smallest subnormal
  CHECK(values[4] == std::ldexp(1.0F, -14));  // the smallest normal
  CHECK(values[5] == std::numeric_limits<float>::infinity());
  CHECK((values[6] == 0.0F && std::signbit(values[6])));
}

TEST_CASE("F16 of every bit pattern equals the compiler's conversion") {
  std::vector<std::byte> bytes(2 * 65536);
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto half = static_cast<uint16_t>(i);
    std::memcpy(bytes.data() + 2 * i, &half, 2);
  }
  const std::vector<float> values = Dequantized(StorageType::kF16, bytes);
  int num_wrong = 0;
  for (uint32_t i = 0; i < 65536; ++i) {
    const auto expected = static_cast<float>(std::bit_cast<_Float16>(static_cast<uint16_t>(i)));
    const bool same = std::isnan(expected) ? std::isnan(values[i])
                                           : std::bit_cast<uint32_t>(expected) == std::bit_cast<uint32_t>(values[i]);
    num_wrong += same ? 0 : 1;
  }
  CHECK(num_wrong == 0);
}

TEST_CASE("Q8_0 by hand") {
  std::vector<uint8_t> block = {0x00, 0x38};  // scale 0.5
  for (int i = 0; i < 32; ++i) block.push_back(static_cast<uint8_t>(i - 16));
  block[2] = 0x80;  // -128
  const std::vector<float> values = Dequantized(StorageType::kQ8_0, Bytes(block));
  CHECK(values[0] == -64.0F);
  CHECK(values[1] == -7.5F);
  CHECK(values[16] == 0.0F);
  CHECK(values[31] == 7.5F);
}

TEST_CASE("Q4_0 by hand: low nibbles come first") {
  std::vector<uint8_t> block = {0x00, 0x40};  // scale 2
  for (int i = 0; i < 16; ++i) block.push_back(static_cast<uint8_t>(i | ((15 - i) << 4)));
  const std::vector<float> values = Dequantized(StorageType::kQ4_0, Bytes(block));
  for (int i = 0; i < 16; ++i) {
    CHECK(values[i] == static_cast<float>(2 * (i - 8)));
    CHECK(values[i + 16] == static_cast<float>(2 * (15 - i - 8)));
  }
}

TEST_CASE("Q4_1 by hand: scale, minimum, low nibbles first") {
  std::vector<uint8_t> block = {0x00, 0x38, 0x00, 0xbc};  // scale 0.5, minimum -1
  for (int i = 0; i < 16; ++i) block.push_back(static_cast<uint8_t>(i | (7 << 4)));
  const std::vector<float> values = Dequantized(StorageType::kQ4_1, Bytes(block));
  for (int i = 0; i < 16; ++i) {
    CHECK(values[i] == static_cast<float>(i) * 0.5F - 1.0F);
    CHECK(values[i + 16] == 2.5F);
  }
}

TEST_CASE("blocks follow each other, at any address") {
  const auto type = GENERATE(StorageType::kQ8_0, StorageType::kQ4_0, StorageType::kQ4_1, StorageType::kF16,
                             StorageType::kBF16, StorageType::kF32);
  std::mt19937 generator(7);
  std::normal_distribution<float> normal;
  std::vector<float> values(5 * 32);
  for (float& value : values) value = normal(generator);
  const std::vector<std::byte> bytes = testing::Quantize(type, values);
  std::vector<std::byte> shifted(bytes.size() + 1);
  std::memcpy(shifted.data() + 1, bytes.data(), bytes.size());
  const std::vector<float> out = Dequantized(type, std::span(shifted).subspan(1));

  CHECK(out == Dequantized(type, bytes));
  // Half a quantization step of a block whose values span about 8; each type's step follows from its codes.
  const float tolerance = type == StorageType::kQ4_0   ? 0.5F
                          : type == StorageType::kQ4_1 ? 0.3F
                          : type == StorageType::kF32  ? 0.0F
                                                       : 0.02F;
  for (size_t i = 0; i < values.size(); ++i) {
    INFO("element " << i);
    CHECK(std::abs(out[i] - values[i]) <= tolerance);
  }
}

TEST_CASE("no elements are no work") { CHECK(Dequantized(StorageType::kQ4_1, {}).empty()); }

}  // namespace
}  // namespace quire
