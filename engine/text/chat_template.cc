#include "engine/text/chat_template.h"

#include <chrono>
#include <utility>

#include "engine/base/status.h"
#include "engine/base/strings.h"
#include "engine/text/text_ffi_handles.h"
#include "engine/text/utf8.h"
#include "nlohmann/json.hpp"

namespace quire {
namespace {

class JinjaChatTemplate : public ChatTemplate {
 public:
  JinjaChatTemplate(QuireTemplateHandle handle, std::string bos_text, std::string eos_text)
      : handle_(std::move(handle)), bos_text_(std::move(bos_text)), eos_text_(std::move(eos_text)) {}

  absl::StatusOr<std::string> Render(std::span<const ChatMessage> messages, bool add_generation_prompt) const override {
    auto list = nlohmann::json::array();
    for (size_t i = 0; i < messages.size(); ++i) {
      QUIRE_RETURN_IF_ERROR(CheckUtf8(i, "role", messages[i].role));
      QUIRE_RETURN_IF_ERROR(CheckUtf8(i, "content", messages[i].content));
      list.push_back({{"role", messages[i].role}, {"content", messages[i].content}});
    }
    const nlohmann::json context = {{"messages", std::move(list)},
                                    {"add_generation_prompt", add_generation_prompt},
                                    {"bos_token", bos_text_},
                                    {"eos_token", eos_text_}};
    const auto now = std::chrono::system_clock::now().time_since_epoch();
    return RenderJson(context.dump(), std::chrono::duration_cast<std::chrono::seconds>(now).count());
  }

  absl::StatusOr<std::string> RenderJson(const std::string& context_json, int64_t now_unix_seconds) const override {
    QuireString text = {};
    QuireString error = {};
    const QuireTextStatus status =
        quire_template_render(handle_.get(), ToQuireBytes(context_json), now_unix_seconds, &text, &error);
    if (status != QUIRE_TEXT_OK) return TakeTextError(status, "chat template", error);
    return TakeQuireString(text);
  }

 private:
  static absl::Status CheckUtf8(size_t index, std::string_view field, std::string_view text) {
    const size_t valid = Utf8ValidPrefix(text);
    if (valid == text.size()) return absl::OkStatus();
    return InvalidArgument(StrCat("messages[", index, "].", std::string(field)),
                           StrCat("a broken character at byte ", valid), "valid UTF-8");
  }

  QuireTemplateHandle handle_;
  std::string bos_text_;
  std::string eos_text_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<ChatTemplate>> ChatTemplate::Create(const std::string& source,
                                                                   const std::string& bos_text,
                                                                   const std::string& eos_text) {
  for (const std::string& text : {bos_text, eos_text}) {
    if (Utf8ValidPrefix(text) != text.size()) {
      return InvalidArgument("chat template", "a BOS or EOS text with a broken character", "valid UTF-8");
    }
  }
  QuireTemplate* chat_template = nullptr;
  QuireString error = {};
  const QuireTextStatus status = quire_template_create(ToQuireBytes(source), &chat_template, &error);
  if (status != QUIRE_TEXT_OK) return TakeTextError(status, "chat template", error);
  return std::make_unique<JinjaChatTemplate>(QuireTemplateHandle(chat_template), bos_text, eos_text);
}

}  // namespace quire
