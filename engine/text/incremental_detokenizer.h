#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/ids.h"
#include "engine/text/tokenizer.h"

namespace quire {

// Turns one request's output tokens into text as they come. What it gives out is always whole UTF-8 characters,
// and never the beginning of a stop string that may still complete. Concatenated, the pieces equal the text of the
// whole, however it is cut into tokens: of several stop strings, the one whose end comes first counts. Special tokens
// add nothing. Not thread-safe; belongs to one request.
class IncrementalDetokenizer {
 public:
  // `tokenizer` must outlive it. Empty stop strings are ignored.
  IncrementalDetokenizer(const Tokenizer* tokenizer, std::vector<std::string> stop_strings);

  // Takes the next token and returns the text that is now certain (often empty). After a stop string was found
  // it takes no more.
  std::string Append(TokenId token);

  // True once a stop string was found; it and what follows are not part of the text.
  bool stopped() const { return stopped_; }

  // The text still held back, at the end of the request: a broken character is replaced by U+FFFD.
  std::string Flush();

 private:
  // Moves what is whole in bytes_ to text_, looks there for a stop string, and takes out what is certain.
  std::string TakeCertain(bool is_last);

  const Tokenizer* tokenizer_;
  std::vector<std::string> stop_strings_;
  std::string bytes_;  // the beginning of a character whose end has not come
  std::string text_;   // whole characters not given out yet: a stop string may begin here
  bool stopped_ = false;
};

}  // namespace quire
