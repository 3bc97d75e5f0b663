#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/ids.h"
#include "engine/checkpoint/checkpoint.h"

namespace quire {

// A model's tokenizer, built from the vocabulary, merges and pre-tokenizer that its checkpoint carries.
// Immutable; thread-safe.
class Tokenizer {
 public:
  // Unimplemented names a tokenizer or pre-tokenizer that is not supported.
  static absl::StatusOr<std::unique_ptr<Tokenizer>> Create(const Checkpoint& checkpoint);

  virtual ~Tokenizer() = default;

  virtual int64_t vocab_size() const = 0;
  // Bytes of the longest token: a prompt of n bytes has at least n / max_token_bytes tokens.
  virtual int64_t max_token_bytes() const = 0;

  // Token ids of UTF-8 `text` (InvalidArgument if it is not valid UTF-8). `parse_special`: a control token's text
  // becomes its id, as templates need; otherwise it is ordinary text. User-defined tokens, which are no control
  // tokens but words that the vocabulary keeps whole, are always found. `add_bos`: begins with the BOS token if the
  // checkpoint asks for one. Time is linear in the text; a word longer than 64 KiB is cut, which may change its ids.
  virtual absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text, bool parse_special,
                                                      bool add_bos) const = 0;

  // The text of `ids`; invalid UTF-8 in it is replaced by U+FFFD. Special tokens are left out unless asked for. The
  // space that sentence pieces put before a text is taken off.
  // InvalidArgument for an id outside the vocabulary.
  virtual absl::StatusOr<std::string> Decode(std::span<const TokenId> ids, bool with_special) const = 0;

  // The bytes that a token stands for, as they are (a token may hold half a character); a special token's own name.
  // `id` must be in the vocabulary.
  virtual std::string TokenBytes(TokenId id) const = 0;
  virtual bool IsSpecial(TokenId id) const = 0;

  // Union of all end-of-generation ids that the model declares: EOS, EOT, EOM, <|im_end|> and their kin. Sorted.
  virtual std::span<const TokenId> end_of_generation_ids() const = 0;
  virtual const std::string& bos_text() const = 0;  // empty if there is none
  virtual const std::string& eos_text() const = 0;
};

}  // namespace quire
