#include "tests/server/fake_text.h"

#include "engine/base/status.h"
#include "engine/text/utf8.h"

namespace quire::testing {

absl::StatusOr<std::vector<TokenId>> ByteTokenizer::Encode(std::string_view text, bool, bool) const {
  if (on_encode_) on_encode_();
  if (Utf8ValidPrefix(text) != text.size()) return absl::InvalidArgumentError("not UTF-8");
  std::vector<TokenId> ids;
  for (const char c : text) ids.push_back(static_cast<unsigned char>(c));
  return ids;
}

absl::StatusOr<std::string> ByteTokenizer::Decode(std::span<const TokenId> ids, bool with_special) const {
  std::string bytes;
  for (const TokenId id : ids) {
    if (with_special || !IsSpecial(id)) bytes += TokenBytes(id);
  }
  std::string text;
  MoveUtf8(bytes, /*is_last=*/true, text);
  return text;
}

std::string ByteTokenizer::TokenBytes(TokenId id) const {
  if (id == kEndOfText) return "<end>";
  if (id == kMark) return "<mark>";
  return std::string(1, static_cast<char>(id));
}

absl::StatusOr<std::string> PlainTemplate::Render(std::span<const ChatMessage> messages, bool) const {
  std::string text;
  for (const ChatMessage& message : messages) {
    if (message.content == "raise") return absl::InvalidArgumentError("the template raised: no such thing");
    text += message.role + ":" + message.content + ";";
  }
  return text;
}

absl::StatusOr<std::string> PlainTemplate::RenderJson(const std::string&, int64_t) const {
  return absl::UnimplementedError("not in tests");
}

}  // namespace quire::testing
