#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/text/tokenizer.h"

namespace quire::testing {

// Encodes `text`, and checks what the tokenizer promises of every text and of the ids it makes: they are in the
// vocabulary and no more than the memory sum expects, and their text is the same at once and token by token. False if
// the text is refused, which only one that is not UTF-8 may be.
bool CheckEncoding(const Tokenizer& tokenizer, std::string_view text);

// Gives `ids` to an incremental detokenizer, and checks that it ends where the first stop string does, and that its
// pieces are what Decode makes of all ids.
void CheckDetokenizing(const Tokenizer& tokenizer, const std::vector<TokenId>& ids,
                       const std::vector<std::string>& stop_strings);

}  // namespace quire::testing
