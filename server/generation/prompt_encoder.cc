#include "server/generation/prompt_encoder.h"

#include "engine/base/status.h"

namespace quire {
namespace {

constexpr std::string_view kRoles[] = {"system", "user", "assistant", "tool"};

bool IsKnownRole(std::string_view role) {
  for (const std::string_view known : kRoles) {
    if (role == known) return true;
  }
  return false;
}

// The text layer knows no field names; a refused prompt names the request's.
absl::Status NamingField(const absl::Status& status, std::string_view field) {
  if (status.code() != absl::StatusCode::kInvalidArgument || FieldOf(status)) return status;
  return NeverFits(field, std::string(status.message()));
}

}  // namespace

absl::Status CheckTokenIds(std::string_view field, const std::vector<TokenId>& ids, int64_t vocab_size) {
  for (size_t i = 0; i < ids.size(); ++i) {
    if (ids[i] >= 0 && ids[i] < vocab_size) continue;
    return InvalidArgument(StrCat(field, "[", i, "]"), ids[i], StrCat("[0, ", vocab_size, ")"));
  }
  return absl::OkStatus();
}

int64_t BytesOf(const Prompt& prompt) {
  size_t num_bytes = 0;
  if (const auto* text = std::get_if<TextPrompt>(&prompt)) {
    num_bytes = text->text.size();
  } else if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) {
    num_bytes = ids->size() * sizeof(TokenId);
  } else {
    for (const ChatMessage& message : std::get<std::vector<ChatMessage>>(prompt)) num_bytes += message.content.size();
  }
  return static_cast<int64_t>(num_bytes);
}

PromptEncoder::PromptEncoder(const Tokenizer* tokenizer, const ChatTemplate* chat_template, int64_t vocab_size,
                             int64_t max_model_len)
    : tokenizer_(tokenizer),
      chat_template_(chat_template),
      special_text_guard_(*tokenizer),
      vocab_size_(vocab_size),
      max_model_len_(max_model_len) {}

absl::Status PromptEncoder::Check(const Prompt& prompt) const {
  if (const auto* text = std::get_if<TextPrompt>(&prompt)) {
    if (text->text.empty()) return InvalidArgument("text", "an empty prompt", "at least one character");
    return CheckBytes("text", static_cast<int64_t>(text->text.size()));
  }
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) {
    if (ids->empty()) return InvalidArgument("token_ids", "an empty prompt", "at least one token id");
    return CheckTokenIds("token_ids", *ids, vocab_size_);
  }
  return CheckChat(std::get<std::vector<ChatMessage>>(prompt));
}

absl::StatusOr<std::vector<TokenId>> PromptEncoder::Encode(const Prompt& prompt) const {
  if (const auto* text = std::get_if<TextPrompt>(&prompt)) {
    auto ids = tokenizer_->Encode(text->text, text->parse_special, /*add_bos=*/true);
    if (!ids.ok()) return NamingField(ids.status(), "text");
    return ids;
  }
  if (const auto* ids = std::get_if<std::vector<TokenId>>(&prompt)) return *ids;
  return EncodeChat(std::get<std::vector<ChatMessage>>(prompt));
}

absl::Status PromptEncoder::CheckBytes(std::string_view field, int64_t num_bytes) const {
  if (num_bytes <= max_prompt_bytes()) return absl::OkStatus();
  return NeverFits(field, StrCat("the prompt has ", num_bytes, " bytes, more than the limit of ", max_prompt_bytes(),
                                 " (max_model_len of ", max_model_len_, " tokens x ", tokenizer_->max_token_bytes(),
                                 " bytes of the longest token)"));
}

absl::Status PromptEncoder::CheckChat(const std::vector<ChatMessage>& messages) const {
  if (chat_template_ == nullptr) {
    return InvalidArgument("chat", "messages", "text or token_ids, because the model has no chat template");
  }
  if (messages.empty()) return InvalidArgument("chat.messages", "an empty prompt", "at least one message");
  int64_t num_bytes = 0;
  for (size_t i = 0; i < messages.size(); ++i) {
    if (!IsKnownRole(messages[i].role)) {
      return InvalidArgument(StrCat("chat.messages[", i, "].role"), StrCat("\"", messages[i].role, "\""),
                             "system, user, assistant or tool");
    }
    num_bytes += static_cast<int64_t>(messages[i].content.size());
  }
  return CheckBytes("chat", num_bytes);
}

absl::StatusOr<std::vector<TokenId>> PromptEncoder::EncodeChat(const std::vector<ChatMessage>& messages) const {
  std::vector<ChatMessage> guarded = messages;
  for (ChatMessage& message : guarded) message.content = special_text_guard_.Guard(message.content);
  const auto text = chat_template_->Render(guarded, /*add_generation_prompt=*/true);
  if (!text.ok()) return NamingField(text.status(), "chat");
  if (text->empty()) return InvalidArgument("chat", "an empty rendered prompt", "at least one character");
  // A template may repeat what it was given.
  QUIRE_RETURN_IF_ERROR(CheckBytes("chat", static_cast<int64_t>(text->size())));
  // The template writes BOS itself where the model wants one.
  auto ids = tokenizer_->Encode(*text, /*parse_special=*/true, /*add_bos=*/false);
  if (!ids.ok()) return NamingField(ids.status(), "chat");
  return ids;
}

}  // namespace quire
