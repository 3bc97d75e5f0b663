#include "server/http/openai_request.h"

#include <limits>
#include <utility>

#include "engine/base/status.h"
#include "server/messages/json_fields.h"
#include "server/messages/sampling_fields.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
constexpr int64_t kDefaultCompletionTokens = 16;  // OpenAI's

// Messages' text may come in parts.
absl::StatusOr<std::string> ParseContent(const std::string& field, const Json& content) {
  if (content.is_null()) return std::string();
  if (content.is_string()) return content.get<std::string>();
  if (!content.is_array())
    return InvalidArgument(field, std::string_view(content.type_name()), "a string or an array of text parts");
  std::string text;
  for (size_t i = 0; i < content.size(); ++i) {
    std::string type, part;
    JsonFields fields(content[i], StrCat(field, "[", i, "]."));
    fields.Read("type", &type);
    if (type != "text") {
      return InvalidArgument(StrCat(field, "[", i, "].type"), std::string_view(type),
                             "text: this model reads nothing else");
    }
    fields.Read("text", &part);
    QUIRE_RETURN_IF_ERROR(fields.Finish());
    text += part;
  }
  return text;
}

// What chats and completions share.
void ReadCommon(JsonFields& fields, OpenAiRequest& request) {
  fields.Read("model", &request.model);
  ReadSampling(fields, &request.sampling, &request.include_special_tokens);
  fields.Read("n", 1, kMaxChoices, &request.choices_per_prompt);
  fields.Read("stream", &request.stream);
  if (const Json* options = fields.Find("stream_options")) {
    JsonFields stream_fields(*options, "stream_options.");
    stream_fields.Read("include_usage", &request.include_usage);
    stream_fields.Ignore({"include_obfuscation"});
    fields.Fail(stream_fields.Finish());
    if (!request.stream) {
      fields.Fail(
          InvalidArgument("stream_options", std::string_view(options->dump()), "nothing unless stream is true"));
    }
  }
  fields.Read("timeout_seconds", &request.timeout_seconds);
  fields.Read("priority", std::numeric_limits<int32_t>::min(), std::numeric_limits<int32_t>::max(), &request.priority);
  fields.Read("cache_salt", &request.cache_salt);
  fields.Ignore(
      {"user", "metadata", "store", "service_tier", "prompt_cache_key", "prompt_cache_retention", "safety_identifier"});
}

absl::Status CheckChoices(const OpenAiRequest& request) {
  if (request.num_choices() <= kMaxChoices) return absl::OkStatus();
  return InvalidArgument("n", request.choices_per_prompt,
                         StrCat("at most ", kMaxChoices, " choices of all prompts together"));
}

bool IsTokenIds(const Json& value) { return value.is_array() && !value.empty() && value.front().is_number(); }

absl::StatusOr<Prompt> ParsePrompt(const std::string& field, const Json& value) {
  if (value.is_string()) return TextPrompt{.text = value.get<std::string>()};
  if (!IsTokenIds(value)) {
    return InvalidArgument(field, std::string_view(value.type_name()), "a string or a non-empty array of token ids");
  }
  QUIRE_ASSIGN_OR_RETURN(std::vector<TokenId> ids, ReadTokenIds(field, value));
  return ids;
}

// A string, an array of token ids, or an array of those.
absl::StatusOr<std::vector<Prompt>> ParsePrompts(const Json& value) {
  std::vector<Prompt> prompts;
  if (!value.is_array() || value.empty() || IsTokenIds(value)) {
    QUIRE_ASSIGN_OR_RETURN(Prompt prompt, ParsePrompt("prompt", value));
    prompts.push_back(std::move(prompt));
    return prompts;
  }
  if (value.size() > static_cast<size_t>(kMaxChoices)) {
    return InvalidArgument("prompt", StrCat(value.size(), " prompts"), StrCat("at most ", kMaxChoices));
  }
  for (size_t i = 0; i < value.size(); ++i) {
    QUIRE_ASSIGN_OR_RETURN(Prompt prompt, ParsePrompt(StrCat("prompt[", i, "]"), value[i]));
    prompts.push_back(std::move(prompt));
  }
  return prompts;
}

}  // namespace

absl::StatusOr<std::vector<ChatMessage>> ParseMessages(const Json& messages) {
  if (!messages.is_array()) {
    return InvalidArgument("messages", std::string_view(messages.type_name()), "an array of messages");
  }
  std::vector<ChatMessage> result;
  for (size_t i = 0; i < messages.size(); ++i) {
    const std::string path = StrCat("messages[", i, "]");
    ChatMessage message;
    JsonFields fields(messages[i], path + ".");
    fields.Read("role", &message.role);
    if (message.role == "developer") message.role = "system";  // OpenAI's newer word for it
    if (const Json* content = fields.Find("content")) {
      auto text = ParseContent(path + ".content", *content);
      if (text.ok()) message.content = *std::move(text);
      fields.Fail(text.status());
    }
    fields.Ignore({"name", "refusal", "annotations", "audio", "tool_call_id"});
    fields.Expect("tool_calls", Json::array());
    fields.Expect("function_call", nullptr);
    QUIRE_RETURN_IF_ERROR(fields.Finish());
    result.push_back(std::move(message));
  }
  return result;
}

absl::StatusOr<OpenAiRequest> ParseChatRequest(const Json& body) {
  OpenAiRequest request;
  JsonFields fields(body);
  ReadCommon(fields, request);
  const Json* messages = fields.Find("messages");
  auto parsed = ParseMessages(messages != nullptr ? *messages : Json());
  if (parsed.ok()) request.prompts.push_back(*std::move(parsed));
  fields.Fail(parsed.status());

  fields.Read("max_tokens", 1, kMost, &request.sampling.max_tokens);
  fields.Read("max_completion_tokens", 1, kMost, &request.sampling.max_tokens);  // the newer name
  bool logprobs = false;
  fields.Read("logprobs", &logprobs);
  int32_t top_logprobs = 0;
  fields.Read("top_logprobs", 0, kMaxLogprobs, &top_logprobs);
  if (logprobs) request.sampling.num_logprobs = top_logprobs;
  if (!logprobs && top_logprobs > 0)
    fields.Fail(InvalidArgument("top_logprobs", top_logprobs, "0 unless logprobs is true"));

  fields.Ignore({"parallel_tool_calls", "verbosity"});
  fields.Expect("tools", Json::array());
  fields.Expect("functions", Json::array());
  if (const Json* choice = fields.Find("tool_choice"); choice != nullptr && *choice != "auto") {
    fields.Expect("tool_choice", "none");
  }
  fields.Expect("response_format", {{"type", "text"}});
  fields.Expect("modalities", Json::array({"text"}));
  fields.Expect("add_generation_prompt", true);
  QUIRE_RETURN_IF_ERROR(fields.Finish());
  return request;
}

absl::StatusOr<OpenAiRequest> ParseCompletionRequest(const Json& body) {
  OpenAiRequest request;
  JsonFields fields(body);
  ReadCommon(fields, request);
  const Json* prompt = fields.Find("prompt");
  auto prompts = ParsePrompts(prompt != nullptr ? *prompt : Json());
  if (prompts.ok()) request.prompts = *std::move(prompts);
  fields.Fail(prompts.status());

  request.sampling.max_tokens = kDefaultCompletionTokens;
  fields.Read("max_tokens", 1, kMost, &request.sampling.max_tokens);
  if (const Json* logprobs = fields.Find("logprobs")) {
    const absl::StatusOr<int64_t> number = ReadInteger("logprobs", *logprobs, 0, kMaxLogprobs);
    if (number.ok()) request.sampling.num_logprobs = static_cast<int32_t>(*number);
    fields.Fail(number.status());
  }
  fields.Expect("best_of", request.choices_per_prompt);
  fields.Expect("echo", false);
  fields.Expect("suffix", "");
  QUIRE_RETURN_IF_ERROR(fields.Finish());
  QUIRE_RETURN_IF_ERROR(CheckChoices(request));
  return request;
}

}  // namespace quire
