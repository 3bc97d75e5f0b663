// What an answer holds, over a real socket: streamed and whole, and what is refused.
#include <catch2/catch_test_macros.hpp>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "tests/server/test_server.h"

namespace quire::testing {
namespace {

// A stream read to its end, with what its order promises checked.
struct StreamedAnswer {
  v1::StreamStarted started;
  std::string text;
  std::vector<int32_t> token_ids;
  int num_chunks = 0;
  int num_logprobs = 0;
  v1::StreamFinished finished;
  grpc::Status status;
};

StreamedAnswer ReadStream(TestServer& server, const v1::GenerateRequest& request) {
  StreamedAnswer answer;
  grpc::ClientContext context;
  const auto reader = server.generation().GenerateStream(&context, request);
  v1::GenerateStreamResponse response;
  while (reader->Read(&response)) {
    CHECK_FALSE(answer.finished.has_usage());  // nothing follows the last message
    if (response.has_started()) {
      CHECK(answer.num_chunks == 0);
      answer.started = response.started();
    } else if (response.has_chunk()) {
      CHECK_FALSE(answer.started.request_id().empty());
      ++answer.num_chunks;
      answer.text += response.chunk().text();
      answer.token_ids.insert(answer.token_ids.end(), response.chunk().token_ids().begin(),
                              response.chunk().token_ids().end());
      answer.num_logprobs += response.chunk().logprobs_size();
    } else {
      answer.finished = response.finished();
    }
  }
  answer.status = reader->Finish();
  return answer;
}

grpc::Status Generate(TestServer& server, const v1::GenerateRequest& request, v1::GenerateResponse* response) {
  grpc::ClientContext context;
  return server.generation().Generate(&context, request, response);
}

TEST_CASE("a stream starts, brings the text and finishes") {
  TestServer server;
  v1::GenerateRequest request = TextRequest("abc");
  request.set_request_id("mine");
  const StreamedAnswer answer = ReadStream(server, request);
  REQUIRE(answer.status.ok());
  CHECK(answer.started.request_id() == "mine");
  CHECK(answer.started.model() == "test-model");
  CHECK(answer.started.prompt_tokens() == 3);
  CHECK(answer.text == "hello");
  CHECK(answer.token_ids == std::vector<int32_t>{'h', 'e', 'l', 'l', 'o', ByteTokenizer::kEndOfText});
  CHECK(answer.finished.finish_reason() == v1::FINISH_REASON_STOP_TOKEN);
  CHECK(answer.finished.usage().prompt_tokens() == 3);
  CHECK(answer.finished.usage().completion_tokens() == 6);
  CHECK(answer.finished.timings().total_seconds() >= answer.finished.timings().time_to_first_token_seconds());
  CHECK(server.PollUntilIdle());
}

TEST_CASE("the whole answer is the streamed one") {
  struct Case {
    std::string script;
    std::vector<std::string> stops;
    int64_t max_tokens;
    std::string text;
    v1::FinishReason reason;
    int64_t completion_tokens;
  };
  const std::vector<Case> cases = {
      {"plain", {}, 100, "plain", v1::FINISH_REASON_STOP_TOKEN, 6},
      {"grin \xF0\x9F\x98\x80 end", {}, 100, "grin \xF0\x9F\x98\x80 end", v1::FINISH_REASON_STOP_TOKEN, 14},
      // Ended inside a character: the half of it shows as U+FFFD.
      {"ab\xF0\x9F\x98\x80", {}, 4, "ab\xEF\xBF\xBD", v1::FINISH_REASON_LENGTH, 4},
      // A stop string over several tokens; what looks like its beginning is given out in the end.
      {"one STO two STOP three", {"STOP"}, 100, "one STO two ", v1::FINISH_REASON_STOP_STRING, 16},
      {"x\xF0\x9F\x98\x80y", {"\xF0\x9F\x98\x80"}, 100, "x", v1::FINISH_REASON_STOP_STRING, 5},
      {"held STO", {"STOP"}, 100, "held STO", v1::FINISH_REASON_STOP_TOKEN, 9},
      // The stop string completes with the last token that may be made.
      {"abcdef", {"def"}, 6, "abc", v1::FINISH_REASON_STOP_STRING, 6},
  };
  for (const Case& c : cases) {
    INFO(c.script);
    TestServer server({.script = c.script});
    v1::GenerateRequest request = TextRequest("p");
    request.mutable_sampling()->set_max_tokens(c.max_tokens);
    for (const std::string& stop : c.stops) request.mutable_sampling()->add_stop_strings(stop);
    const StreamedAnswer streamed = ReadStream(server, request);
    REQUIRE(streamed.status.ok());
    CHECK(streamed.text == c.text);
    CHECK(streamed.finished.finish_reason() == c.reason);
    CHECK(streamed.finished.usage().completion_tokens() == c.completion_tokens);
    CHECK(static_cast<int64_t>(streamed.token_ids.size()) == c.completion_tokens);

    v1::GenerateResponse whole;
    REQUIRE(Generate(server, request, &whole).ok());
    REQUIRE(whole.outputs_size() == 1);
    CHECK(whole.outputs(0).text() == streamed.text);
    CHECK(std::vector<int32_t>(whole.outputs(0).token_ids().begin(), whole.outputs(0).token_ids().end()) ==
          streamed.token_ids);
    CHECK(whole.outputs(0).finish_reason() == c.reason);
    CHECK(whole.usage().completion_tokens() == c.completion_tokens);
    CHECK(server.PollUntilIdle());
  }
}

TEST_CASE("special tokens stand in the text only if asked for") {
  TestServer server({.script = "", .script_tokens = {'a', ByteTokenizer::kMark, 'b'}});
  v1::GenerateRequest request = TextRequest("p");
  CHECK(ReadStream(server, request).text == "ab");
  request.mutable_sampling()->set_include_special_tokens(true);
  CHECK(ReadStream(server, request).text == "a<mark>b");
}

TEST_CASE("end-of-text is passed over if asked for, stop tokens are not") {
  TestServer server;
  v1::GenerateRequest request = TextRequest("p");
  request.mutable_sampling()->set_ignore_eos(true);
  request.mutable_sampling()->set_max_tokens(8);
  StreamedAnswer answer = ReadStream(server, request);
  CHECK(answer.text == "hellohe");
  CHECK(answer.finished.finish_reason() == v1::FINISH_REASON_LENGTH);
  request.mutable_sampling()->add_stop_token_ids('o');
  answer = ReadStream(server, request);
  CHECK(answer.text == "hell");
  CHECK(answer.finished.finish_reason() == v1::FINISH_REASON_STOP_TOKEN);
}

TEST_CASE("log-probabilities come with their tokens") {
  TestServer server;
  v1::GenerateRequest request = TextRequest("pq");
  request.mutable_sampling()->set_logprobs(2);
  request.mutable_sampling()->set_prompt_logprobs(1);
  CHECK(ReadStream(server, request).num_logprobs == 6);
  v1::GenerateResponse whole;
  REQUIRE(Generate(server, request, &whole).ok());
  REQUIRE(whole.outputs(0).logprobs_size() == 6);
  CHECK(whole.outputs(0).logprobs(0).chosen().text() == "h");
  CHECK(whole.outputs(0).logprobs(0).top_size() == 2);
  REQUIRE(whole.prompt_logprobs_size() == 1);
  CHECK(whole.prompt_logprobs(0).chosen().text() == "q");
}

TEST_CASE("chat is rendered and token ids are used as they are") {
  TestServer server;
  v1::GenerateRequest request = TextRequest("");
  v1::ChatMessage* message = request.mutable_chat()->add_messages();
  message->set_role("user");
  message->set_content("q");
  CHECK(ReadStream(server, request).started.prompt_tokens() == 7);  // "user:q;"
  request.mutable_token_ids()->add_ids(5);
  CHECK(ReadStream(server, request).started.prompt_tokens() == 1);
}

TEST_CASE("every bad request is refused by name, streamed and whole") {
  using Change = std::function<void(v1::GenerateRequest*)>;
  struct Case {
    const char* field;
    Change change;
  };
  const std::vector<Case> cases = {
      {"text", [](auto* r) { r->set_text(""); }},
      {"text", [](auto* r) { r->set_text(std::string(5 << 20, 'x')); }},
      {"text", [](auto* r) { r->set_text("\xC3("); }},
      {"prompt", [](auto* r) { r->set_text(std::string(2000, 'x')); }},
      {"input", [](auto* r) { r->clear_text(); }},
      {"token_ids", [](auto* r) { r->mutable_token_ids(); }},
      {"token_ids[1]",
       [](auto* r) {
         r->mutable_token_ids()->add_ids(1);
         r->mutable_token_ids()->add_ids(258);
       }},
      {"token_ids[0]", [](auto* r) { r->mutable_token_ids()->add_ids(-1); }},
      {"chat.messages", [](auto* r) { r->mutable_chat(); }},
      {"chat.messages[0].role", [](auto* r) { r->mutable_chat()->add_messages()->set_role("wizard"); }},
      {"chat",
       [](auto* r) {
         r->mutable_chat()->add_messages()->set_role("user");
         r->mutable_chat()->mutable_messages(0)->set_content("raise");
       }},
      {"sampling.temperature", [](auto* r) { r->mutable_sampling()->set_temperature(-0.5F); }},
      {"sampling.temperature",
       [](auto* r) { r->mutable_sampling()->set_temperature(std::numeric_limits<float>::quiet_NaN()); }},
      {"sampling.top_p", [](auto* r) { r->mutable_sampling()->set_top_p(0); }},
      {"sampling.top_p", [](auto* r) { r->mutable_sampling()->set_top_p(1.5F); }},
      {"sampling.min_p", [](auto* r) { r->mutable_sampling()->set_min_p(-1); }},
      {"sampling.top_k", [](auto* r) { r->mutable_sampling()->set_top_k(-1); }},
      {"sampling.max_tokens", [](auto* r) { r->mutable_sampling()->set_max_tokens(0); }},
      {"sampling.max_tokens", [](auto* r) { r->mutable_sampling()->set_max_tokens(-3); }},
      {"sampling.max_tokens", [](auto* r) { r->mutable_sampling()->set_max_tokens(1 << 20); }},
      {"sampling.stop_strings[0]", [](auto* r) { r->mutable_sampling()->add_stop_strings(""); }},
      {"sampling.stop_token_ids[0]", [](auto* r) { r->mutable_sampling()->add_stop_token_ids(9999); }},
      {"sampling.logprobs", [](auto* r) { r->mutable_sampling()->set_logprobs(21); }},
      {"sampling.prompt_logprobs", [](auto* r) { r->mutable_sampling()->set_prompt_logprobs(-1); }},
      {"request_id", [](auto* r) { r->set_request_id(std::string(257, 'i')); }},
  };
  TestServer server;
  for (const Case& c : cases) {
    INFO(c.field);
    v1::GenerateRequest request = TextRequest("p");
    c.change(&request);
    const StreamedAnswer streamed = ReadStream(server, request);
    CHECK(streamed.status.error_code() == grpc::INVALID_ARGUMENT);
    CHECK(streamed.status.error_message().starts_with(std::string(c.field) + ":"));
    CHECK(streamed.started.request_id().empty());
    v1::GenerateResponse whole;
    CHECK(Generate(server, request, &whole).error_code() == grpc::INVALID_ARGUMENT);
  }
  v1::GenerateRequest request = TextRequest("p");
  request.set_model("another");
  CHECK(ReadStream(server, request).status.error_code() == grpc::NOT_FOUND);
  CHECK(server.PollUntilIdle());
}

}  // namespace
}  // namespace quire::testing
