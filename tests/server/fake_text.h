#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/text/chat_template.h"
#include "engine/text/tokenizer.h"

namespace quire::testing {

// One token for each byte, so that tests can write outputs as text; characters of several bytes are split over tokens.
class ByteTokenizer : public Tokenizer {
 public:
  static constexpr TokenId kEndOfText = 256;  // special: "<end>"
  static constexpr TokenId kMark = 257;       // special, ends nothing: "<mark>"
  static constexpr int64_t kVocabSize = 258;

  // Runs at the beginning of every Encode: lets a test hold the text pool.
  void SetOnEncode(std::function<void()> on_encode) { on_encode_ = std::move(on_encode); }
  void SetMaxTokenBytes(int64_t bytes) { max_token_bytes_ = bytes; }

  int64_t vocab_size() const override { return kVocabSize; }
  int64_t max_token_bytes() const override { return max_token_bytes_; }
  absl::StatusOr<std::vector<TokenId>> Encode(std::string_view text, bool parse_special, bool add_bos) const override;
  absl::StatusOr<std::string> Decode(std::span<const TokenId> ids, bool with_special) const override;
  std::string TokenBytes(TokenId id) const override;
  bool IsSpecial(TokenId id) const override { return id >= kEndOfText; }
  std::span<const TokenId> end_of_generation_ids() const override { return ends_; }
  const std::string& bos_text() const override { return none_; }
  const std::string& eos_text() const override { return none_; }

 private:
  std::function<void()> on_encode_;
  std::atomic<int64_t> max_token_bytes_ = 8;
  const std::vector<TokenId> ends_ = {kEndOfText};
  const std::string none_;
};

// "role:content;" for each message. Raises on the content "raise".
class PlainTemplate : public ChatTemplate {
 public:
  absl::StatusOr<std::string> Render(std::span<const ChatMessage> messages, bool add_generation_prompt) const override;
  absl::StatusOr<std::string> RenderJson(const std::string& context_json, int64_t now_unix_seconds) const override;
};

}  // namespace quire::testing
