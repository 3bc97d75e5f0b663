#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"

namespace quire {

struct ChatMessage {
  std::string role;
  std::string content;
};

// A model's chat template, rendered as Jinja2 would with trim_blocks and lstrip_blocks. Immutable; thread-safe.
class ChatTemplate {
 public:
  // InvalidArgument says where the template can't be parsed.
  static absl::StatusOr<std::unique_ptr<ChatTemplate>> Create(const std::string& source, const std::string& bos_text,
                                                              const std::string& eos_text);
  virtual ~ChatTemplate() = default;

  // The prompt for `messages`. InvalidArgument carries what the template raised (raise_exception), and ends a template
  // that runs or recurses without bound.
  virtual absl::StatusOr<std::string> Render(std::span<const ChatMessage> messages,
                                             bool add_generation_prompt) const = 0;

  // The general form, for tests and tools: `context_json` is an object with the template's variables;
  // `now_unix_seconds` is what strftime_now sees (UTC).
  virtual absl::StatusOr<std::string> RenderJson(const std::string& context_json, int64_t now_unix_seconds) const = 0;
};

}  // namespace quire
