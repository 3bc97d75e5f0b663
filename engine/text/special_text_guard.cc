#include "engine/text/special_text_guard.h"

#include <set>

#include "engine/text/utf8.h"

namespace quire {
namespace {

constexpr std::string_view kBarrier = "\xEF\xB7\x90";  // U+FDD0

}  // namespace

SpecialTextGuard::SpecialTextGuard(const Tokenizer& tokenizer) {
  for (TokenId id = 0; id < tokenizer.vocab_size(); ++id) {
    if (!tokenizer.IsSpecial(id)) continue;
    std::string name = tokenizer.TokenBytes(id);
    if (!name.empty() && NextUtf8Unit(name).num_bytes < name.size()) names_.push_back(std::move(name));
  }
}

std::string SpecialTextGuard::Guard(std::string_view text) const {
  std::set<size_t> places;  // after the first character of each name found
  for (const std::string& name : names_) {
    const size_t first_character_bytes = NextUtf8Unit(name).num_bytes;
    for (size_t at = text.find(name); at != std::string_view::npos; at = text.find(name, at + 1)) {
      places.insert(at + first_character_bytes);
    }
  }
  std::string guarded;
  size_t begin = 0;
  for (const size_t place : places) {
    guarded.append(text.substr(begin, place - begin)).append(kBarrier);
    begin = place;
  }
  return guarded.append(text.substr(begin));
}

}  // namespace quire
