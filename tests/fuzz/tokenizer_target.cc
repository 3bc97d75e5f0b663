// Texts for the tiny model's tokenizer; the same bytes as token ids for the detokenizer, and parts of what these say as
// stop strings.
#include <algorithm>
#include <string>
#include <vector>

#include "engine/base/check.h"
#include "engine/text/utf8.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/fuzz/tiny_text_layer.h"
#include "tests/fuzz/tokenizer_check.h"

namespace quire::testing {
namespace {

constexpr size_t kMaxIds = 512;
constexpr std::string_view kStages[] = {"encoded"};
constexpr std::string_view kWords[] = {
    "<|im_start|>", "<|im_end|>",   "<|endoftext|>",    "<|im_", "|>",       "hello",        " world",
    "\xEF\xB7\x90", "\xEF\xBF\xBD", "\xF0\x9F\x98\x80", "\xC3",  "\xE2\x82", "\xED\xA0\x80", "\xF4\x90\x80\x80",
    "\r\n",         "\xE2\x80\x8D", "\xCC\x81",         "'ll",   "   ",      "\t",           "0123456789",
    "\xC2\xA0",     "\xE3\x80\x80"};

class TokenizerTexts final : public FuzzTarget {
 public:
  size_t Run(std::string_view input) override {
    const bool is_encoded = CheckEncoding(model_.tokenizer(), input);
    // Every byte has a token of its own here, so that nothing is lost.
    if (is_encoded) {
      const auto ids = model_.tokenizer().Encode(input, /*parse_special=*/false, /*add_bos=*/false);
      QUIRE_CHECK(model_.tokenizer().Decode(*ids, /*with_special=*/true).value() == input);
    }
    const std::vector<TokenId> ids = IdsOf(input);
    const std::string text = model_.tokenizer().Decode(ids, /*with_special=*/false).value();
    CheckDetokenizing(model_.tokenizer(), ids, StopsIn(text, input));
    return is_encoded ? 1 : 0;
  }

 private:
  std::vector<TokenId> IdsOf(std::string_view input) const {
    std::vector<TokenId> ids;
    for (size_t i = 0; i + 1 < input.size() && ids.size() < kMaxIds; i += 2) {
      const int64_t number = 256 * static_cast<uint8_t>(input[i]) + static_cast<uint8_t>(input[i + 1]);
      ids.push_back(static_cast<TokenId>(number % model_.tokenizer().vocab_size()));
    }
    return ids;
  }

  // Some of `text`, in whole characters as those of requests are.
  static std::string Part(const std::string& text, size_t begin, size_t size) {
    std::string bytes = text.substr(begin % text.size(), size % 8);
    std::string part;
    MoveUtf8(bytes, /*is_last=*/true, part);
    return part;
  }

  // Two parts of `text`, one of them changed at its end: a stop string that never completes.
  static std::vector<std::string> StopsIn(const std::string& text, std::string_view input) {
    if (text.empty() || input.size() < 4) return {};
    const auto number = [&](size_t i) {
      return static_cast<size_t>(static_cast<uint8_t>(input[input.size() - 1 - i]));
    };
    const std::string part = Part(text, number(0), number(1));
    return {part, Part(text, number(2), number(3)) + "\x01"};
  }

  TinyTextLayer model_;
};

}  // namespace

FuzzTargetKind TokenizerTarget() {
  return {"tokenizer", kStages, kWords, [] { return std::make_unique<TokenizerTexts>(); }};
}

}  // namespace quire::testing
