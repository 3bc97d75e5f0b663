#include "engine/text/tokenizer.h"

#include <algorithm>
#include <fstream>
#include <random>

#include "catch2/catch_test_macros.hpp"
#include "engine/text/special_text_guard.h"
#include "engine/text/utf8.h"
#include "nlohmann/json.hpp"
#include "tests/engine/text/fake_checkpoint.h"
#include "tests/support/test_data.h"

namespace quire {
namespace {

constexpr int64_t kMillion = 1'000'000;

std::unique_ptr<Tokenizer> Open(const std::filesystem::path& path) {
  const auto checkpoint = OpenCheckpoint(path.string());
  INFO(checkpoint.status().ToString());
  REQUIRE(checkpoint.ok());
  auto tokenizer = Tokenizer::Create(**checkpoint);
  INFO(tokenizer.status().ToString());
  REQUIRE(tokenizer.ok());
  return *std::move(tokenizer);
}

std::unique_ptr<Tokenizer> MakeTokenizer(const testing::FakeCheckpoint& checkpoint) {
  auto tokenizer = Tokenizer::Create(checkpoint);
  INFO(tokenizer.status().ToString());
  REQUIRE(tokenizer.ok());
  return *std::move(tokenizer);
}

absl::Status CreationStatus(const testing::FakeCheckpoint& checkpoint) {
  return Tokenizer::Create(checkpoint).status();
}

std::vector<TokenId> Ids(const Tokenizer& tokenizer, std::string_view text, bool parse_special = false) {
  const auto ids = tokenizer.Encode(text, parse_special, /*add_bos=*/false);
  INFO(ids.status().ToString());
  REQUIRE(ids.ok());
  return *ids;
}

bool Mentions(const absl::Status& status, std::string_view text) {
  return std::string(status.message()).find(text) != std::string::npos;
}

// Every recorded text gives the recorded ids, and the ids give the text.
void CheckVectors(const Tokenizer& tokenizer, const std::string& name) {
  std::ifstream file(testing::RepositoryData("tokenizer_vectors/" + name));
  const auto vectors = nlohmann::json::parse(file);
  REQUIRE(vectors.size() > 40);
  for (const auto& vector : vectors) {
    const std::string text = vector["text"];
    INFO(text);
    const std::vector<TokenId> ids = Ids(tokenizer, text);
    CHECK(ids == vector["ids"].get<std::vector<TokenId>>());
    CHECK(*tokenizer.Decode(ids, true) == text);
  }
}

TEST_CASE("recorded ids of the GPT-2 vocabulary") {
  CheckVectors(*Open(testing::RequireTestData("gguf/vocab-gpt-2.gguf")), "gpt-2.json");
}

TEST_CASE("recorded ids of the Llama 2 vocabulary") {
  CheckVectors(*Open(testing::RequireTestData("gguf/vocab-llama-spm.gguf")), "llama-spm.json");
}

TEST_CASE("recorded ids of the real model") { CheckVectors(*Open(testing::RequireModel()), "smollm2.json"); }

// The metadata that a GGUF of this tokenizer.json would have.
testing::FakeCheckpoint CheckpointOf(const std::string& family, const std::string& pre_tokenizer) {
  std::ifstream file(testing::RequireTestData("tokenizers/" + family + "/tokenizer.json"));
  const auto source = nlohmann::json::parse(file);
  std::vector<std::string> tokens(source["model"]["vocab"].size() + source["added_tokens"].size());
  std::vector<int64_t> kinds(tokens.size(), 1);
  for (const auto& [token, id] : source["model"]["vocab"].items()) tokens.at(id.get<size_t>()) = token;
  for (const auto& added : source["added_tokens"]) {
    tokens.at(added["id"].get<size_t>()) = added["content"];
    kinds.at(added["id"].get<size_t>()) = added["special"].get<bool>() ? 3 : 4;
  }
  std::vector<std::string> merges;
  for (const auto& merge : source["model"]["merges"]) {
    merges.push_back(merge.is_string() ? merge.get<std::string>()
                                       : merge[0].get<std::string>() + " " + merge[1].get<std::string>());
  }
  testing::FakeCheckpoint checkpoint;
  checkpoint.metadata["tokenizer.ggml.model"] = std::string("gpt2");
  checkpoint.metadata["tokenizer.ggml.pre"] = pre_tokenizer;
  checkpoint.metadata["tokenizer.ggml.tokens"] = tokens;
  checkpoint.metadata["tokenizer.ggml.token_type"] = kinds;
  checkpoint.metadata["tokenizer.ggml.merges"] = merges;
  return checkpoint;
}

TEST_CASE("recorded ids of the Llama 3 vocabulary") {
  CheckVectors(*MakeTokenizer(CheckpointOf("llama-3.1", "llama-bpe")), "llama-bpe.json");
}

TEST_CASE("recorded ids of the Qwen vocabulary") {
  CheckVectors(*MakeTokenizer(CheckpointOf("qwen3", "qwen2")), "qwen2.json");
}

TEST_CASE("control tokens in text are ordinary text unless asked for") {
  const auto tokenizer = MakeTokenizer(testing::MakeByteLevelCheckpoint());
  CHECK(Ids(*tokenizer, "ab<|end|>ab", true) == std::vector<TokenId>{34, 0, 34});
  const std::vector<TokenId> plain = Ids(*tokenizer, "<|end|>");
  CHECK(plain.size() == 7);
  CHECK(std::ranges::find(plain, 0) == plain.end());
  CHECK(*tokenizer->Decode(plain, false) == "<|end|>");
  CHECK(*tokenizer->Decode(std::vector<TokenId>{34, 0, 34}, false) == "abab");
  CHECK(*tokenizer->Decode(std::vector<TokenId>{34, 0, 34}, true) == "ab<|end|>ab");
  CHECK(Ids(*tokenizer, "<tool>") == std::vector<TokenId>{1});  // a word of the vocabulary, not a control token
  CHECK_FALSE(tokenizer->IsSpecial(1));
  CHECK(tokenizer->IsSpecial(2));
}

TEST_CASE("the real model's control tokens") {
  const auto tokenizer = Open(testing::RequireModel());
  CHECK(tokenizer->vocab_size() == 49152);
  const std::vector<TokenId> ids = Ids(*tokenizer, "<|im_start|>user\nHi<|im_end|>\n", true);
  CHECK(ids == std::vector<TokenId>{1, 4093, 198, 26843, 2, 198});
  const std::vector<TokenId> plain = Ids(*tokenizer, "<|im_start|>user\nHi<|im_end|>\n");
  CHECK(std::ranges::none_of(plain, [&](TokenId id) { return tokenizer->IsSpecial(id); }));
  CHECK(std::vector<TokenId>(tokenizer->end_of_generation_ids().begin(), tokenizer->end_of_generation_ids().end()) ==
        std::vector<TokenId>{0, 2});
  CHECK(tokenizer->eos_text() == "<|im_end|>");
  CHECK(tokenizer->TokenBytes(2) == "<|im_end|>");
}

TEST_CASE("guarded text keeps its ids inside a prompt that parses control tokens") {
  const auto tokenizer = MakeTokenizer(testing::MakeByteLevelCheckpoint());
  const SpecialTextGuard guard(*tokenizer);
  const std::string text = "ab <|end|><|im_end|> ab<|en";
  CHECK(Ids(*tokenizer, guard.Guard(text), true) == Ids(*tokenizer, text));
  CHECK(guard.Guard("ab") == "ab");
  std::vector<TokenId> expected = Ids(*tokenizer, "<|end|>");
  expected.push_back(0);
  CHECK(Ids(*tokenizer, guard.Guard("<|end|>") + "<|end|>", true) == expected);
}

TEST_CASE("BOS is added if the checkpoint asks for it and the caller does") {
  auto checkpoint = testing::MakeByteLevelCheckpoint();
  checkpoint.metadata["tokenizer.ggml.bos_token_id"] = int64_t{2};
  CHECK(MakeTokenizer(checkpoint)->Encode("ab", false, true)->size() == 1);
  checkpoint.metadata["tokenizer.ggml.add_bos_token"] = true;
  CHECK(*MakeTokenizer(checkpoint)->Encode("ab", false, true) == std::vector<TokenId>{2, 34});
  CHECK(*MakeTokenizer(checkpoint)->Encode("ab", false, false) == std::vector<TokenId>{34});
  CHECK(MakeTokenizer(checkpoint)->bos_text() == "<|im_end|>");
}

TEST_CASE("ends are all that the model declares") {
  auto checkpoint = testing::MakeByteLevelCheckpoint();
  checkpoint.metadata["tokenizer.ggml.eot_token_id"] = int64_t{5};
  const auto tokenizer = MakeTokenizer(checkpoint);
  const auto ends = tokenizer->end_of_generation_ids();
  CHECK(std::vector<TokenId>(ends.begin(), ends.end()) == std::vector<TokenId>{0, 2, 5});
}

TEST_CASE("broken UTF-8 and ids outside the vocabulary are refused") {
  const auto tokenizer = MakeTokenizer(testing::MakeByteLevelCheckpoint());
  for (const char* text : {"a\xFF", "\xC3", "\xED\xA0\x80", "\xC0\x80", "\xF4\x90\x80\x80"}) {
    const absl::Status status = tokenizer->Encode(text, false, false).status();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(Mentions(status, "UTF-8"));
  }
  for (const TokenId id : {-1, 40}) {
    const absl::Status status = tokenizer->Decode(std::vector<TokenId>{id}, false).status();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(Mentions(status, "[0, 40)"));
  }
}

TEST_CASE("vocabularies that can't be used are refused by name") {
  const testing::FakeCheckpoint good = testing::MakeByteLevelCheckpoint();
  auto bad = good;
  bad.metadata["tokenizer.ggml.model"] = std::string("t5");
  CHECK(CreationStatus(bad).code() == absl::StatusCode::kUnimplemented);
  CHECK(Mentions(CreationStatus(bad), "t5"));
  bad = good;
  bad.metadata["tokenizer.ggml.pre"] = std::string("tekken");
  CHECK(CreationStatus(bad).code() == absl::StatusCode::kUnimplemented);
  CHECK(Mentions(CreationStatus(bad), "tekken"));
  for (const char* key : {"tokenizer.ggml.tokens", "tokenizer.ggml.merges"}) {
    bad = good;
    bad.metadata.erase(key);
    CHECK(Mentions(CreationStatus(bad), key));
  }
  bad = good;
  bad.metadata["tokenizer.ggml.merges"] = std::vector<std::string>{"a b", "b zz"};
  CHECK(CreationStatus(bad).code() == absl::StatusCode::kInvalidArgument);
  bad.metadata["tokenizer.ggml.merges"] = std::vector<std::string>{"ab"};
  CHECK(CreationStatus(bad).code() == absl::StatusCode::kInvalidArgument);
  bad = good;
  bad.metadata["tokenizer.ggml.token_type"] = std::vector<int64_t>{1};
  CHECK(Mentions(CreationStatus(bad), "token_type"));
  bad = good;
  bad.metadata["tokenizer.ggml.eos_token_id"] = int64_t{40};
  CHECK(Mentions(CreationStatus(bad), "eos_token_id"));
}

TEST_CASE("random text comes back from its ids") {
  const auto tokenizer = Open(testing::RequireTestData("gguf/vocab-gpt-2.gguf"));
  std::mt19937 random(7);
  const std::vector<std::string> pieces = {" ",
                                           "  ",
                                           "\n",
                                           "\r\n",
                                           "\t",
                                           "a",
                                           "Word",
                                           "12",
                                           "'s",
                                           "'",
                                           "é",
                                           "日本",
                                           "\xF0\x9F\x98\x80",
                                           "\xE2\x80\x8D",
                                           "\xC2\xA0",
                                           "<|endoftext|>",
                                           "!?"};
  for (int round = 0; round < 200; ++round) {
    std::string text;
    for (int i = 0; i < 40; ++i) text += pieces[random() % pieces.size()];
    CHECK(*tokenizer->Decode(Ids(*tokenizer, text), true) == text);
  }
}

// Whatever took the square of its length would not end.
TEST_CASE("a token of a megabyte is taken like any other") {
  const std::string longest(kMillion, 'a');
  for (const std::string model : {"gpt2", "llama"}) {
    testing::FakeCheckpoint checkpoint = testing::MakeByteLevelCheckpoint();
    checkpoint.metadata["tokenizer.ggml.model"] = model;
    auto& tokens = std::get<std::vector<std::string>>(checkpoint.metadata["tokenizer.ggml.tokens"]);
    auto& kinds = std::get<std::vector<int64_t>>(checkpoint.metadata["tokenizer.ggml.token_type"]);
    const std::pair<std::string, int64_t> added[] = {{longest, 4}, {longest + "b", 3}, {longest + "c", 1}};
    for (const auto& [token, kind] : added) {
      tokens.push_back(token);
      kinds.push_back(kind);
    }
    checkpoint.metadata["tokenizer.ggml.scores"] = std::vector<float>(tokens.size(), 0);
    checkpoint.metadata["tokenizer.ggml.add_space_prefix"] = false;
    const auto tokenizer = MakeTokenizer(checkpoint);
    CHECK(Ids(*tokenizer, longest).size() == 1);
    CHECK(Ids(*tokenizer, longest + "b", /*parse_special=*/true).size() == 1);
  }
}

TEST_CASE("five megabytes of anything are encoded") {
  const auto tokenizer = Open(testing::RequireTestData("gguf/vocab-gpt-2.gguf"));
  for (const std::string unit : {"a", " ", "\n", "The quick brown fox, 1234. ", "'", "\xE6\x97\xA5", "<|endoftext|>"}) {
    std::string text;
    while (static_cast<int64_t>(text.size()) < 5 * kMillion) text += unit;
    INFO(unit);
    const std::vector<TokenId> ids = Ids(*tokenizer, text, true);
    CHECK(*tokenizer->Decode(ids, true) == text);
  }
  CHECK_FALSE(tokenizer->Encode(std::string(65 << 20, 'a'), false, false).ok());  // beyond the limit of one call
}

TEST_CASE("no token is longer than max_token_bytes says") {
  const auto tokenizer = MakeTokenizer(testing::MakeByteLevelCheckpoint());
  CHECK(tokenizer->max_token_bytes() == 10);  // <|im_end|>
  CHECK(tokenizer->TokenBytes(35) == " ab");
}

}  // namespace
}  // namespace quire
