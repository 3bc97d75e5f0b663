#include "engine/model/kv_cache_storage.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/test_data.h"

namespace quire::testing {

TEST_CASE("figure: the KV bytes formula equals the storage's own number") {
  std::ifstream file(RequireTestData("attention/worked_examples.json"));
  const auto figures = nlohmann::json::parse(file)["kv_bytes"];
  REQUIRE(figures.size() == 3);
  for (const auto& figure : figures) {
    REQUIRE(figure["bytes_per_element"] == 2);
    const KvLayout layout = {.num_kv_heads = figure["num_kv_heads"].get<int64_t>(),
                             .head_dim = figure["head_dim"].get<int64_t>(),
                             .block_size = 16,
                             .dtype = DType::kBF16};
    const auto layers = figure["layers"].get<int64_t>();
    const int64_t num_tokens = figure["seq_len"].get<int64_t>() * figure["batch"].get<int64_t>();
    CHECK(KvCacheStorage::BytesPerBlock(layers, layout) * num_tokens / layout.block_size ==
          figure["bytes"].get<int64_t>());
  }
}

TEST_CASE("an int8 block takes a byte for each element and four for each token and head's scales") {
  const KvLayout layout = {.num_kv_heads = 3, .head_dim = 64, .block_size = 16, .dtype = DType::kInt8};
  const int64_t num_rows = 2 * 30 * 3 * 16;  // keys and values, layers, heads, tokens
  CHECK(KvCacheStorage::BytesPerBlock(30, layout) == num_rows * (64 + 4));
  const KvCacheStorage storage(30, layout, 7);
  CHECK(storage.size_bytes() == 7 * num_rows * (64 + 4));
}

TEST_CASE("layers and tiles do not overlap and fill the storage") {
  const DType dtype = GENERATE(DType::kF32, DType::kBF16, DType::kInt8);
  const KvLayout layout = {.num_kv_heads = 3, .head_dim = 8, .block_size = 16, .dtype = dtype};
  const KvCacheStorage storage(2, layout, 5);
  CHECK(storage.size_bytes() == 5 * KvCacheStorage::BytesPerBlock(2, layout));
  const std::byte* next = storage.layer(0).keys;
  for (int64_t layer = 0; layer < 2; ++layer) {
    const KvLayerView view = storage.layer(layer);
    for (const bool values : {false, true}) {
      for (BlockId block = 0; block < 5; ++block) {
        for (int64_t head = 0; head < 3; ++head) {
          CHECK((values ? view.ValueTile(block, head) : view.KeyTile(block, head)) == next);
          next += layout.TileBytes();
        }
      }
    }
  }
  CHECK(next == storage.layer(0).keys + storage.size_bytes());
}

}  // namespace quire::testing
