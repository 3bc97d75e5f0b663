// A file made by another writer, with the values that its own reader gives: tests/data/generate_gguf_reference.py.
#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/checkpoint/checkpoint.h"
#include "tests/support/test_data.h"

namespace quire {
namespace {

TEST_CASE("tensors of another writer dequantize to its own values, bit by bit") {
  const std::string type = GENERATE("F32", "F16", "BF16", "Q8_0", "Q4_0", "Q4_1");
  std::ifstream file(testing::RepositoryData("gguf_reference.json"));
  const auto expected = nlohmann::json::parse(file).at(type).get<std::vector<float>>();
  const auto checkpoint = OpenCheckpoint(testing::RepositoryData("gguf_reference.gguf").string());
  REQUIRE(checkpoint.ok());
  const CheckpointTensor* tensor = (*checkpoint)->FindTensor(type);
  REQUIRE(tensor != nullptr);
  CHECK(ToString(tensor->type) == type);
  CHECK(tensor->shape == std::vector<int64_t>{2, 64});
  std::vector<float> values(128);
  std::vector<std::byte> bytes(static_cast<size_t>(tensor->num_bytes));
  REQUIRE((*checkpoint)->ReadTensor(*tensor, 0, bytes).ok());
  Dequantize(tensor->type, bytes, values);
  CHECK(values == expected);
}

TEST_CASE("metadata of another writer") {
  const auto checkpoint = OpenCheckpoint(testing::RepositoryData("gguf_reference.gguf").string());
  REQUIRE(checkpoint.ok());
  CHECK((*checkpoint)->format() == "GGUF v3");
  CHECK((*checkpoint)->GetInt("llama.block_count").value() == 3);
  CHECK((*checkpoint)->GetFloat("llama.rope.freq_base").value() == 10000.0);
  CHECK((*checkpoint)->GetStringArray("tokenizer.ggml.tokens").value() == std::vector<std::string>{"a", "b",
                                                                                                   "\xc4\xa0"
                                                                                                   "c"});
  CHECK_FALSE((*checkpoint)->GetBool("tokenizer.ggml.add_bos_token").value());
}

}  // namespace
}  // namespace quire
