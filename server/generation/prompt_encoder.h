#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/ids.h"
#include "engine/text/chat_template.h"
#include "engine/text/special_text_guard.h"
#include "engine/text/tokenizer.h"

namespace quire {

struct TextPrompt {
  std::string text;
  bool parse_special = false;  // the text of a special token becomes that token
};

// A prompt as it came: text, token ids or a conversation.
using Prompt = std::variant<TextPrompt, std::vector<TokenId>, std::vector<ChatMessage>>;

// What its text or its ids take.
int64_t BytesOf(const Prompt& prompt);

// Names the first id outside of [0, vocab_size) as an element of `field`.
absl::Status CheckTokenIds(std::string_view field, const std::vector<TokenId>& ids, int64_t vocab_size);

// Turns prompts into token ids. A prompt that can't fit, by its bytes alone, is refused before it is tokenized.
// Immutable; thread-safe.
class PromptEncoder {
 public:
  // `tokenizer` and `chat_template` must outlive it; `chat_template` may be null. `vocab_size` is the model's.
  PromptEncoder(const Tokenizer* tokenizer, const ChatTemplate* chat_template, int64_t vocab_size,
                int64_t max_model_len);

  // The cheap checks, for the caller's own thread: empty prompts, sizes, ids outside the vocabulary.
  absl::Status Check(const Prompt& prompt) const;

  // The ids of a prompt that passed Check. Takes time in proportion to the prompt.
  absl::StatusOr<std::vector<TokenId>> Encode(const Prompt& prompt) const;

  // A prompt of more bytes has more than max_model_len tokens, whatever they are.
  int64_t max_prompt_bytes() const { return max_model_len_ * tokenizer_->max_token_bytes(); }

 private:
  absl::Status CheckBytes(std::string_view field, int64_t num_bytes) const;
  absl::Status CheckChat(const std::vector<ChatMessage>& messages) const;
  absl::StatusOr<std::vector<TokenId>> EncodeChat(const std::vector<ChatMessage>& messages) const;

  const Tokenizer* tokenizer_;
  const ChatTemplate* chat_template_;
  SpecialTextGuard special_text_guard_;  // a message's text must not become the template's control tokens
  int64_t vocab_size_;
  int64_t max_model_len_;
};

}  // namespace quire
