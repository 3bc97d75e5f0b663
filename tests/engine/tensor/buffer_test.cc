#include "engine/tensor/buffer.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <cstdint>
#include <utility>

#include "engine/tensor/tensor_view.h"

namespace quire {
namespace {

TEST_CASE("a buffer is zeroed and 64-byte aligned") {
  const int64_t size_bytes = GENERATE(int64_t{1}, int64_t{63}, int64_t{4096}, int64_t{5} << 20);
  const Buffer buffer(size_bytes);
  CHECK(buffer.size_bytes() == size_bytes);
  CHECK(reinterpret_cast<uintptr_t>(buffer.data()) % 64 == 0);
  int64_t num_set = 0;
  for (int64_t i = 0; i < size_bytes; ++i) num_set += buffer.data()[i] != std::byte{0};
  CHECK(num_set == 0);
}

TEST_CASE("a buffer of no bytes owns nothing") {
  CHECK(Buffer(0).data() == nullptr);
  CHECK(Buffer().size_bytes() == 0);
}

TEST_CASE("a moved buffer keeps its bytes and leaves nothing") {
  Buffer first(256);
  first.as<float>()[3] = 2.0F;
  std::byte* const data = first.data();
  Buffer second = std::move(first);
  CHECK(second.data() == data);
  CHECK(first.data() == nullptr);  // NOLINT(bugprone-use-after-move): the moved-from state is promised
  CHECK(first.size_bytes() == 0);
  Buffer third(64);
  third = std::move(second);
  CHECK(third.as<float>()[3] == 2.0F);
  CHECK(third.size_bytes() == 256);
}

TEST_CASE("a matrix view finds its rows") {
  float values[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
  const MatrixView<float> view(values, 3, 2, 4);
  CHECK(view.row(1)[0] == 4.0F);
  CHECK(view.row(2).size() == 2);
  const MatrixView<const float> tail = view.row_range(1, 3);
  CHECK(tail.rows == 2);
  CHECK(tail.row_data(1)[1] == 9.0F);
}

}  // namespace
}  // namespace quire
