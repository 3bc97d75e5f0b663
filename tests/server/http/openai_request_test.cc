// Bodies of OpenAI's API: what is read, and what is refused by name.
#include "server/http/openai_request.h"

#include <catch2/catch_test_macros.hpp>
#include <string>
#include <variant>

#include "engine/base/status.h"
#include "server/messages/json_fields.h"

namespace quire::testing {
namespace {

using nlohmann::json;

json ChatBody(const json& more = json::object()) {
  json body = {{"messages", {{{"role", "user"}, {"content", "hi"}}}}};
  body.update(more);
  return body;
}

json CompletionBody(const json& more = json::object()) {
  json body = {{"prompt", "hi"}};
  body.update(more);
  return body;
}

template <typename Value>
std::string RefusedField(const absl::StatusOr<Value>& result) {
  CHECK(result.status().code() == absl::StatusCode::kInvalidArgument);
  return FieldOf(result.status()).value_or("");
}

TEST_CASE("a chat's parameters are read") {
  const auto request = ParseChatRequest(json::parse(R"({
    "model": "m",
    "messages": [{"role": "developer", "content": "be brief"},
                 {"role": "user", "name": "ann", "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]}],
    "temperature": 0.5, "top_p": 0.25, "top_k": 7, "min_p": 0.125, "repetition_penalty": 1.5, "seed": 42,
    "max_completion_tokens": 9, "stop": "end", "n": 2, "logprobs": true, "top_logprobs": 3, "ignore_eos": true,
    "stop_token_ids": [5], "stream": true, "stream_options": {"include_usage": true}, "timeout_seconds": 1.5,
    "priority": -3, "cache_salt": "s", "skip_special_tokens": false, "user": "u", "tools": [], "tool_choice": "none",
    "response_format": {"type": "text"}, "frequency_penalty": 0.0, "logit_bias": {}, "presence_penalty": null})"));
  REQUIRE(request.ok());
  CHECK(request->model == "m");
  REQUIRE(request->prompts.size() == 1);
  const auto& messages = std::get<std::vector<ChatMessage>>(request->prompts[0]);
  REQUIRE(messages.size() == 2);
  CHECK(messages[0].role == "system");
  CHECK(messages[1].content == "ab");
  CHECK(request->sampling.temperature == 0.5F);
  CHECK(request->sampling.top_p == 0.25F);
  CHECK(request->sampling.top_k == 7);
  CHECK(request->sampling.min_p == 0.125F);
  CHECK(request->sampling.repetition_penalty == 1.5F);
  CHECK(request->sampling.seed == 42U);
  CHECK(request->sampling.max_tokens == 9);
  CHECK(request->sampling.stop_strings == std::vector<std::string>{"end"});
  CHECK(request->sampling.stop_token_ids == std::vector<TokenId>{5});
  CHECK(request->sampling.num_logprobs == 3);
  CHECK(request->sampling.ignore_eos);
  CHECK(request->choices_per_prompt == 2);
  CHECK(request->stream);
  CHECK(request->include_usage);
  CHECK(request->timeout_seconds == 1.5);
  CHECK(request->priority == -3);
  CHECK(request->cache_salt == "s");
  CHECK(request->include_special_tokens);
}

TEST_CASE("what is not said has OpenAI's defaults") {
  const auto chat = ParseChatRequest(ChatBody());
  REQUIRE(chat.ok());
  CHECK(chat->sampling.temperature == 1.0F);
  CHECK_FALSE(chat->sampling.max_tokens.has_value());
  CHECK_FALSE(chat->sampling.num_logprobs.has_value());
  CHECK_FALSE(chat->stream);
  const auto completion = ParseCompletionRequest(CompletionBody());
  REQUIRE(completion.ok());
  CHECK(completion->sampling.max_tokens == 16);
}

TEST_CASE("a completion takes a text, token ids, and several of each") {
  const auto texts = [](const json& prompt) {
    const auto request = ParseCompletionRequest({{"prompt", prompt}, {"logprobs", 2}, {"echo", false}});
    REQUIRE(request.ok());
    CHECK(request->sampling.num_logprobs == 2);
    return request->prompts;
  };
  CHECK(std::get<TextPrompt>(texts("a")[0]).text == "a");
  CHECK(std::get<std::vector<TokenId>>(texts({1, 2})[0]) == std::vector<TokenId>{1, 2});
  const auto two = texts({"a", "b"});
  REQUIRE(two.size() == 2);
  CHECK(std::get<TextPrompt>(two[1]).text == "b");
  const auto lists = texts(json::parse("[[1], [2, 3]]"));
  REQUIRE(lists.size() == 2);
  CHECK(std::get<std::vector<TokenId>>(lists[1]) == std::vector<TokenId>{2, 3});
}

TEST_CASE("a parameter that is wrong, not supported or not known is refused by name") {
  struct Case {
    const char* more;
    const char* field;
  };
  for (const auto& [more, field] : {
           Case{R"({"temperature": "hot"})", "temperature"},
           Case{R"({"max_tokens": 0})", "max_tokens"},
           Case{R"({"max_tokens": 1.5})", "max_tokens"},
           Case{R"({"max_tokens": 99999999999999999999})", "max_tokens"},
           Case{R"({"seed": 18446744073709551615})", "seed"},
           Case{R"({"n": 0})", "n"},
           Case{R"({"n": 129})", "n"},
           Case{R"({"stop": [1]})", "stop"},
           Case{R"({"stop_token_ids": [-1]})", "stop_token_ids[0]"},
           Case{R"({"stream": 1})", "stream"},
           Case{R"({"stream_options": {"include_usage": true}})", "stream_options"},
           Case{R"({"stream": true, "stream_options": {"usage": true}})", "stream_options.usage"},
           Case{R"({"stream": true, "stream_options": []})", "stream_options"},
           Case{R"({"frequency_penalty": 0.5})", "frequency_penalty"},
           Case{R"({"logit_bias": {"1": 5}})", "logit_bias"},
           Case{R"({"temprature": 0})", "temprature"},
           Case{R"({"timeout_seconds": "1"})", "timeout_seconds"},
       }) {
    CAPTURE(more);
    CHECK(RefusedField(ParseChatRequest(ChatBody(json::parse(more)))) == field);
    CHECK(RefusedField(ParseCompletionRequest(CompletionBody(json::parse(more)))) == field);
  }
  for (const auto& [more, field] : {
           Case{R"({"messages": null})", "messages"},
           Case{R"({"messages": "hi"})", "messages"},
           Case{R"({"messages": [7]})", "messages[0]"},
           Case{R"({"messages": [{"role": 7}]})", "messages[0].role"},
           Case{R"({"messages": [{"role": "user", "content": 7}]})", "messages[0].content"},
           Case{R"({"messages": [{"role": "user", "content": [{"type": "image_url"}]}]})",
                "messages[0].content[0].type"},
           Case{R"({"messages": [{"role": "user", "content": "a", "tool_calls": [{}]}]})", "messages[0].tool_calls"},
           Case{R"({"top_logprobs": 3})", "top_logprobs"},
           Case{R"({"logprobs": 3})", "logprobs"},
           Case{R"({"tools": [{"type": "function"}]})", "tools"},
           Case{R"({"tool_choice": "required"})", "tool_choice"},
           Case{R"({"response_format": {"type": "json_object"}})", "response_format"},
       }) {
    CAPTURE(more);
    CHECK(RefusedField(ParseChatRequest(ChatBody(json::parse(more)))) == field);
  }
  for (const auto& [more, field] : {
           Case{R"({"prompt": null})", "prompt"},
           Case{R"({"prompt": []})", "prompt"},
           Case{R"({"prompt": [1, "a"]})", "prompt[1]"},
           Case{R"({"prompt": ["a", 1]})", "prompt[1]"},
           Case{R"({"prompt": [[1], []]})", "prompt[1]"},
           Case{R"({"logprobs": true})", "logprobs"},
           Case{R"({"best_of": 2})", "best_of"},
           Case{R"({"echo": true})", "echo"},
           Case{R"({"suffix": "x"})", "suffix"},
           Case{R"({"prompt": ["a", "b"], "n": 100})", "n"},
       }) {
    CAPTURE(more);
    CHECK(RefusedField(ParseCompletionRequest(CompletionBody(json::parse(more)))) == field);
  }
}

TEST_CASE("a body that is no JSON object, or takes more memory than its text, is refused") {
  CHECK(ParseJsonObject(R"({"a": [1, 2]})", 4).ok());
  for (const std::string& text :
       {std::string(), std::string("{"), std::string("[]"), std::string("7"), std::string("{\"a\": \"\xff\"}"),
        std::string(R"({"a": [1, 2, 3]})"), R"({"a": )" + std::string(100, '[') + std::string(100, ']') + "}"}) {
    CAPTURE(text);
    CHECK(RefusedField(ParseJsonObject(text, text.size() > 100 ? 1000 : 4)) == "body");
  }
}

}  // namespace
}  // namespace quire::testing
