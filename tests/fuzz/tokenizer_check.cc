#include "tests/fuzz/tokenizer_check.h"

#include <algorithm>

#include "engine/base/check.h"
#include "engine/text/incremental_detokenizer.h"
#include "engine/text/utf8.h"

namespace quire::testing {
namespace {

std::string TextOf(const Tokenizer& tokenizer, const std::vector<TokenId>& ids) {
  std::string bytes;
  for (const TokenId id : ids) bytes += tokenizer.IsSpecial(id) ? "" : tokenizer.TokenBytes(id);
  std::string text;
  MoveUtf8(bytes, /*is_last=*/true, text);
  return text;
}

// Where in `text` the first stop string ends; text.npos if there is none.
size_t FirstStopEnd(const std::string& text, const std::vector<std::string>& stop_strings) {
  size_t first = text.npos;
  for (const std::string& stop : stop_strings) {
    const size_t begin = stop.empty() ? text.npos : text.find(stop);
    if (begin != text.npos) first = std::min(first, begin + stop.size());
  }
  return first;
}

bool IsTextBeforeStop(const std::string& made, const std::string& text, size_t end,
                      const std::vector<std::string>& stop_strings) {
  return std::ranges::any_of(stop_strings, [&](const std::string& stop) {
    return !stop.empty() && stop.size() <= end && text.compare(end - stop.size(), stop.size(), stop) == 0 &&
           made == text.substr(0, end - stop.size());
  });
}

}  // namespace

bool CheckEncoding(const Tokenizer& tokenizer, std::string_view text) {
  const bool is_valid = Utf8ValidPrefix(text) == text.size();
  for (const bool parse_special : {false, true}) {
    const absl::StatusOr<std::vector<TokenId>> ids = tokenizer.Encode(text, parse_special, /*add_bos=*/true);
    QUIRE_CHECK(ids.ok() == is_valid);
    if (!ids.ok()) continue;
    // A space may be three bytes in a vocabulary, one token each, and one comes before the text.
    QUIRE_CHECK_LE(ids->size(), 3 * text.size() + 4);
    for (const TokenId id : *ids) QUIRE_CHECK(id >= 0 && id < tokenizer.vocab_size());
    QUIRE_CHECK(tokenizer.Decode(*ids, /*with_special=*/true).ok());
    CheckDetokenizing(tokenizer, *ids, {});
  }
  return is_valid;
}

void CheckDetokenizing(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                       const std::vector<std::string>& stop_strings) {
  IncrementalDetokenizer detokenizer(&tokenizer, stop_strings);
  std::string made;
  for (const TokenId id : ids) {
    const std::string piece = detokenizer.Append(id);
    QUIRE_CHECK_EQ(Utf8ValidPrefix(piece), piece.size());
    made += piece;
  }
  made += detokenizer.Flush();
  const std::string text = TextOf(tokenizer, ids);
  const size_t end = FirstStopEnd(text, stop_strings);
  QUIRE_CHECK(detokenizer.stopped() == (end != text.npos));
  QUIRE_CHECK(detokenizer.stopped() ? IsTextBeforeStop(made, text, end, stop_strings) : made == text);
}

}  // namespace quire::testing
