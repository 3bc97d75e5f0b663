#include "server/messages/request_translation.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <chrono>
#include <google/protobuf/stubs/logging.h>
#include <limits>
#include <optional>
#include <string>

#include "engine/base/status.h"
#include "server/messages/wire_parsing.h"

namespace quire {
namespace {

TEST_CASE("every input becomes its prompt") {
  v1::GenerateRequest request;
  request.set_text("hi");
  CHECK(std::get<TextPrompt>(*ToPrompt(request)).text == "hi");
  CHECK_FALSE(std::get<TextPrompt>(*ToPrompt(request)).parse_special);

  request.mutable_token_ids()->add_ids(7);
  CHECK(std::get<std::vector<TokenId>>(*ToPrompt(request)) == std::vector<TokenId>{7});

  v1::ChatMessage* message = request.mutable_chat()->add_messages();
  message->set_role("user");
  message->set_content("question");
  const auto prompt = ToPrompt(request);
  const auto& messages = std::get<std::vector<ChatMessage>>(*prompt);
  REQUIRE(messages.size() == 1);
  CHECK(messages[0].role == "user");
  CHECK(messages[0].content == "question");
}

TEST_CASE("no input is refused by name") {
  const auto generate = ToPrompt(v1::GenerateRequest());
  CHECK(generate.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(FieldOf(generate.status()) == "input");
  CHECK(FieldOf(ToPrompt(v1::TokenizeRequest()).status()) == "input");
}

TEST_CASE("unset sampling parameters keep their defaults") {
  const SamplingParams params = ToSamplingParams({});
  const SamplingParams defaults;
  CHECK(params.temperature == defaults.temperature);
  CHECK(params.top_k == defaults.top_k);
  CHECK(params.top_p == defaults.top_p);
  CHECK(params.min_p == defaults.min_p);
  CHECK(params.repetition_penalty == defaults.repetition_penalty);
  CHECK_FALSE(params.seed);
  CHECK_FALSE(params.max_tokens);
  CHECK_FALSE(params.ignore_eos);
  CHECK_FALSE(params.num_logprobs);
  CHECK_FALSE(params.num_prompt_logprobs);
}

TEST_CASE("set sampling parameters arrive, zeros too") {
  v1::SamplingParams message;
  message.set_temperature(0);
  message.set_top_k(5);
  message.set_top_p(0.5F);
  message.set_min_p(0.25F);
  message.set_repetition_penalty(1.5F);
  message.set_seed(0);
  message.set_max_tokens(9);
  message.add_stop_strings("end");
  message.add_stop_token_ids(3);
  message.set_ignore_eos(true);
  message.set_logprobs(0);
  message.set_prompt_logprobs(2);
  const SamplingParams params = ToSamplingParams(message);
  CHECK(params.temperature == 0.0F);
  CHECK(params.top_k == 5);
  CHECK(params.top_p == 0.5F);
  CHECK(params.min_p == 0.25F);
  CHECK(params.repetition_penalty == 1.5F);
  CHECK(params.seed == 0U);
  CHECK(params.max_tokens == 9);
  CHECK(params.stop_strings == std::vector<std::string>{"end"});
  CHECK(params.stop_token_ids == std::vector<TokenId>{3});
  CHECK(params.ignore_eos);
  CHECK(params.num_logprobs == 0);
  CHECK(params.num_prompt_logprobs == 2);
}

TEST_CASE("the earlier of the call's deadline and the request's timeout counts") {
  const TimePoint arrival(std::chrono::hours(1));
  const TimePoint in_a_minute = arrival + std::chrono::minutes(1);
  std::optional<double> timeout;
  CHECK(*ToDeadline(timeout, arrival, std::nullopt) == std::nullopt);
  CHECK(*ToDeadline(timeout, arrival, in_a_minute) == in_a_minute);
  timeout = 30;
  CHECK(*ToDeadline(timeout, arrival, std::nullopt) == arrival + std::chrono::seconds(30));
  CHECK(*ToDeadline(timeout, arrival, in_a_minute) == arrival + std::chrono::seconds(30));
  timeout = 90;
  CHECK(*ToDeadline(timeout, arrival, in_a_minute) == in_a_minute);
}

TEST_CASE("a timeout out of range is refused by name, value and range") {
  const double timeout = GENERATE(0.0, -1.0, 31536001.0, std::numeric_limits<double>::infinity(),
                                  std::numeric_limits<double>::quiet_NaN());
  const auto deadline = ToDeadline(timeout, TimePoint(), std::nullopt);
  CHECK(deadline.status().code() == absl::StatusCode::kInvalidArgument);
  CHECK(FieldOf(deadline.status()) == "timeout_seconds");
  CHECK(std::string(deadline.status().message()).find("expected a number in (0, 31536000]") != std::string::npos);
}

TEST_CASE("request ids are bounded and can't break log lines") {
  CHECK(CheckRequestId("").ok());
  CHECK(CheckRequestId(std::string(256, 'x')).ok());
  CHECK(FieldOf(CheckRequestId(std::string(257, 'x'))) == "request_id");
  CHECK(FieldOf(CheckRequestId("a\nb")) == "request_id");
  CHECK(CheckRequestId("\xC3\xA9").ok());
  CHECK(FieldOf(CheckRequestId("\xFF")) == "request_id");
}

TEST_CASE("another model's name is not found") {
  CHECK(CheckModelName("", "m").ok());
  CHECK(CheckModelName("m", "m").ok());
  CHECK(CheckModelName("other", "m").code() == absl::StatusCode::kNotFound);
}

TEST_CASE("a string that is not UTF-8 is refused by its path") {
  v1::GenerateRequest request;
  std::string path;
  SECTION("text") {
    request.set_text("ok\xFF");
    path = "text";
  }
  SECTION("nested") {
    request.mutable_chat()->add_messages()->set_content("\xC3(");
    path = "chat.messages.content";
  }
  SECTION("repeated") {
    request.mutable_sampling()->add_stop_strings("\xED\xA0\x80");  // a surrogate
    path = "sampling.stop_strings";
  }
  v1::GenerateRequest parsed;
  const absl::Status status = ParseMessage(request.SerializeAsString(), &parsed);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(FieldOf(status) == path);
}

int num_logged = 0;

TEST_CASE("what can't be parsed writes nothing to the log") {
  v1::GenerateRequest request;
  request.mutable_chat()->add_messages()->set_role("\xC3(");
  const std::string bytes = request.SerializeAsString();
  auto* const handler = google::protobuf::SetLogHandler(
      [](google::protobuf::LogLevel, const char*, int, const std::string&) { ++num_logged; });
  v1::GenerateRequest parsed;
  for (size_t size = 0; size < bytes.size(); ++size) {
    ParseMessage(bytes.substr(0, size), &parsed).IgnoreError();
  }
  google::protobuf::SetLogHandler(handler);
  CHECK(num_logged == 0);
}

TEST_CASE("two inputs on the wire are refused") {
  v1::GenerateRequest text;
  text.set_text("a");
  v1::GenerateRequest ids;
  ids.mutable_token_ids()->add_ids(1);
  v1::GenerateRequest parsed;
  const absl::Status status = ParseMessage(text.SerializeAsString() + ids.SerializeAsString(), &parsed);
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  CHECK(FieldOf(status) == "input");
  // Optional fields are oneofs inside; two of them exclude nothing.
  text.mutable_sampling()->set_temperature(1);
  text.mutable_sampling()->set_top_k(1);
  CHECK(ParseMessage(text.SerializeAsString(), &parsed).ok());
}

TEST_CASE("fields are counted at every depth") {
  v1::GenerateRequest request;
  CHECK(CountFields(*request.GetDescriptor(), request.SerializeAsString()) == 0);
  for (int i = 0; i < 3; ++i) request.mutable_chat()->add_messages()->set_role("user");  // 1 + 3 x 2
  request.mutable_sampling()->set_temperature(1);                                        // 2
  request.set_priority(1);                                                               // 1
  request.GetReflection()->MutableUnknownFields(&request)->AddLengthDelimited(99, "a");  // 1
  request.GetReflection()->MutableUnknownFields(&request)->AddFixed64(98, 1);            // 1
  const std::string bytes = request.SerializeAsString();
  CHECK(CountFields(*request.GetDescriptor(), bytes) == 12);
  const std::string group = "\xA3\x06\xA3\x06\x08\x01\xA4\x06\xA4\x06";  // in a group, and a field in it
  CHECK(CountFields(*request.GetDescriptor(), bytes + group) == 12 + 5);
}

TEST_CASE("a small message that would take much memory is refused before it does") {
  v1::GenerateRequest request;
  const int num_messages = 1 << 16;
  for (int i = 0; i < num_messages; ++i) request.mutable_chat()->add_messages();
  v1::GenerateRequest parsed;
  const absl::Status status = ParseMessage(request.SerializeAsString(), &parsed);
  CHECK(FieldOf(status) == "request");
  CHECK_FALSE(parsed.has_chat());
  request.mutable_chat()->mutable_messages()->RemoveLast();
  CHECK(ParseMessage(request.SerializeAsString(), &parsed).ok());
}

TEST_CASE("bytes that are no message are refused") {
  v1::GenerateRequest parsed;
  const std::string broken = GENERATE(std::string("\x0A\x7F"), std::string("\xFF\xFF\xFF"), std::string("\x0B"));
  CHECK(ParseMessage(broken, &parsed).code() == absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace quire
