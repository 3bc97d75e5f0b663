#include "engine/text/incremental_detokenizer.h"

#include <random>

#include "catch2/catch_test_macros.hpp"
#include "engine/text/utf8.h"
#include "tests/engine/text/fake_checkpoint.h"

namespace quire {
namespace {

constexpr std::string_view kEmoji = "\xF0\x9F\x98\x80";

std::unique_ptr<Tokenizer> MakeTokenizer() {
  auto tokenizer = Tokenizer::Create(testing::MakeByteLevelCheckpoint());
  REQUIRE(tokenizer.ok());
  return *std::move(tokenizer);
}

// Ids in MakeByteLevelCheckpoint's vocabulary.
TokenId Letter(char letter) { return 3 + (letter - 'a'); }
constexpr TokenId kSpace = 29;
constexpr TokenId kEmojiBytes[] = {30, 31, 32, 33};

struct Streamed {
  std::vector<std::string> pieces;
  std::string text;
  bool stopped = false;
};

Streamed Stream(const Tokenizer& tokenizer, std::span<const TokenId> ids, std::vector<std::string> stop_strings) {
  IncrementalDetokenizer detokenizer(&tokenizer, std::move(stop_strings));
  Streamed streamed;
  for (const TokenId id : ids) streamed.pieces.push_back(detokenizer.Append(id));
  streamed.pieces.push_back(detokenizer.Flush());
  for (const std::string& piece : streamed.pieces) streamed.text += piece;
  streamed.stopped = detokenizer.stopped();
  return streamed;
}

// The text up to the stop string that is complete first, found byte by byte in the whole.
std::string CutAtStop(const std::string& text, const std::vector<std::string>& stop_strings) {
  for (size_t end = 1; end <= text.size(); ++end) {
    size_t longest = 0;
    for (const std::string& stop : stop_strings) {
      if (std::string_view(text).substr(0, end).ends_with(stop)) longest = std::max(longest, stop.size());
    }
    if (longest > 0) return text.substr(0, end - longest);
  }
  return text;
}

TEST_CASE("an emoji split over tokens comes whole") {
  const auto tokenizer = MakeTokenizer();
  const TokenId ids[] = {Letter('a'), 30, 31, 32, 33, Letter('b')};
  const Streamed streamed = Stream(*tokenizer, ids, {});
  CHECK(streamed.pieces == std::vector<std::string>{"a", "", "", "", std::string(kEmoji), "b", ""});
}

TEST_CASE("a character that never ends is replaced") {
  const auto tokenizer = MakeTokenizer();
  CHECK(Stream(*tokenizer, std::vector<TokenId>{30, 31}, {}).text == kReplacementCharacter);
  CHECK(Stream(*tokenizer, std::vector<TokenId>{30, 31, Letter('a')}, {}).pieces[2] ==
        std::string(kReplacementCharacter) + "a");
}

TEST_CASE("special tokens add nothing and do not part a character") {
  const auto tokenizer = MakeTokenizer();
  const TokenId ids[] = {30, 31, 2, 32, 33};
  CHECK(Stream(*tokenizer, ids, {}).text == kEmoji);
}

TEST_CASE("what may become a stop string is held back") {
  const auto tokenizer = MakeTokenizer();
  IncrementalDetokenizer detokenizer(tokenizer.get(), {"stop"});
  CHECK(detokenizer.Append(Letter('x')) == "x");
  CHECK(detokenizer.Append(Letter('s')).empty());
  CHECK(detokenizer.Append(Letter('t')).empty());
  CHECK(detokenizer.Append(Letter('s')) == "st");  // the last s may begin anew
  CHECK(detokenizer.Append(Letter('t')).empty());
  CHECK(detokenizer.Append(Letter('o')).empty());
  CHECK_FALSE(detokenizer.stopped());
  CHECK(detokenizer.Append(Letter('p')).empty());
  CHECK(detokenizer.stopped());
  CHECK(detokenizer.Append(Letter('a')).empty());
  CHECK(detokenizer.Flush().empty());
}

TEST_CASE("text held back is given at the end") {
  const auto tokenizer = MakeTokenizer();
  const Streamed streamed = Stream(*tokenizer, std::vector<TokenId>{Letter('s'), Letter('t')}, {"stop", ""});
  CHECK(streamed.text == "st");
  CHECK_FALSE(streamed.stopped);
}

TEST_CASE("the stop string that is complete first counts") {
  const auto tokenizer = MakeTokenizer();
  const TokenId ids[] = {Letter('a'), Letter('b'), Letter('c')};
  CHECK(Stream(*tokenizer, ids, {"abc", "b"}).text == "a");
  CHECK(Stream(*tokenizer, std::vector<TokenId>{34, Letter('c')}, {"abc", "b"}).text == "a");  // "ab" is one token
  CHECK(Stream(*tokenizer, ids, {"c", "bc"}).text == "a");
  CHECK(Stream(*tokenizer, kEmojiBytes, {std::string(kEmoji)}).text.empty());
}

TEST_CASE("random tokens: the pieces are valid and equal the whole") {
  const auto tokenizer = MakeTokenizer();
  std::mt19937 random(11);
  for (int round = 0; round < 2000; ++round) {
    std::vector<TokenId> ids(random() % 30);
    for (TokenId& id : ids) {
      const uint32_t kind = random() % 4;
      id = kind == 0   ? static_cast<TokenId>(random() % 40)
           : kind == 1 ? Letter(random() % 2 == 0 ? 'a' : 'b')
                       : static_cast<TokenId>(kSpace + random() % 7);
    }
    const Streamed streamed = Stream(*tokenizer, ids, {});
    CHECK(streamed.text == *tokenizer->Decode(ids, false));
    for (const std::string& piece : streamed.pieces) REQUIRE(Utf8ValidPrefix(piece) == piece.size());
  }
}

TEST_CASE("random tokens with stop strings: cut as the whole text is") {
  const auto tokenizer = MakeTokenizer();
  const std::vector<std::vector<std::string>> stop_sets = {{"ab ab"},
                                                           {"aa", "ba b"},
                                                           {std::string(kEmoji)},
                                                           {std::string(kEmoji) + " a", "bbb"},
                                                           {" ", "a "},
                                                           {"abab", "ba", std::string(kReplacementCharacter)}};
  std::mt19937 random(13);
  int num_stopped = 0;
  for (int round = 0; round < 6000; ++round) {
    const std::vector<std::string>& stops = stop_sets[round % stop_sets.size()];
    std::vector<TokenId> ids;
    for (uint32_t i = random() % 20; i > 0; --i) {
      const TokenId choices[] = {Letter('a'), Letter('b'), kSpace, 34, 35, 30};
      const TokenId chosen = choices[random() % 6];
      ids.push_back(chosen);
      if (chosen == 30 && random() % 4 != 0) ids.insert(ids.end(), {31, 32, 33});
    }
    const Streamed streamed = Stream(*tokenizer, ids, stops);
    const std::string whole = *tokenizer->Decode(ids, false);
    CHECK(streamed.text == CutAtStop(whole, stops));
    CHECK(streamed.stopped == (streamed.text != whole));
    num_stopped += streamed.stopped ? 1 : 0;
    for (const std::string& piece : streamed.pieces) REQUIRE(Utf8ValidPrefix(piece) == piece.size());
  }
  CHECK(num_stopped > 1000);
}

}  // namespace
}  // namespace quire
