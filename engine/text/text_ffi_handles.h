#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "engine/text/text_ffi.h"

// What the C ABI hands out, owned; and its errors as a Status.

namespace quire {

inline QuireBytes ToQuireBytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

// Copies and frees.
inline std::string TakeQuireString(QuireString string) {
  std::string text(reinterpret_cast<const char*>(string.data), string.size);
  quire_string_free(string);
  return text;
}

// `status` is not QUIRE_TEXT_OK; frees `error`.
inline absl::Status TakeTextError(QuireTextStatus status, std::string_view what, QuireString error) {
  const std::string message = std::string(what) + ": " + TakeQuireString(error);
  return status == QUIRE_TEXT_INVALID ? absl::InvalidArgumentError(message) : absl::InternalError(message);
}

struct QuireTokenizerDeleter {
  void operator()(QuireTokenizer* tokenizer) const { quire_tokenizer_free(tokenizer); }
};
using QuireTokenizerHandle = std::unique_ptr<QuireTokenizer, QuireTokenizerDeleter>;

struct QuireTemplateDeleter {
  void operator()(QuireTemplate* chat_template) const { quire_template_free(chat_template); }
};
using QuireTemplateHandle = std::unique_ptr<QuireTemplate, QuireTemplateDeleter>;

}  // namespace quire
