#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"

namespace quire {

// Keeps the names of control tokens in a user's text from becoming these tokens once a template has put the text into
// a prompt that is encoded with parse_special. Immutable; thread-safe.
class SpecialTextGuard {
 public:
  explicit SpecialTextGuard(const Tokenizer& tokenizer);

  // `text` with the noncharacter U+FDD0 inside each control token's name. Encode drops it again, so that the ids are
  // those of ordinary text.
  std::string Guard(std::string_view text) const;

 private:
  std::vector<std::string> names_;  // of control tokens, of two characters or more
};

}  // namespace quire
