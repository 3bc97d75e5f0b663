#include "client/batch_line.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>

#include <string>

namespace quire {
namespace {

using Catch::Matchers::ContainsSubstring;

// Parses one line over the flags `arguments`.
grpc::Status Parse(const std::string& line, v1::GenerateRequest& request, const std::string& arguments = "") {
  CLI::App app;
  const RequestFlags flags(app, /*for_chat=*/false);
  app.parse(arguments);
  return ParseBatchRequest(MakeBatchLine(7, line), flags, request);
}

TEST_CASE("an id is the line's own, or its number") {
  CHECK(MakeBatchLine(7, R"({"id": "a", "prompt": "x"})").id == "a");
  CHECK(MakeBatchLine(7, R"({"id": 3, "prompt": "x"})").id == 3);
  CHECK(MakeBatchLine(7, R"({"prompt": "x"})").id == "line-7");
  CHECK(MakeBatchLine(7, "no JSON").id == "line-7");
  CHECK(MakeBatchLine(7, R"({"id": [1]})").id == "line-7");
}

TEST_CASE("a line overrides the flags") {
  v1::GenerateRequest request;
  REQUIRE(Parse(R"({"id": 5, "prompt": "x", "temperature": 0, "stop": "s", "seed": 18446744073709551615})", request,
                "--temperature 0.5 --top-k 4 --stop a --stop b")
              .ok());
  CHECK(request.text() == "x");
  CHECK(request.request_id() == "5");
  CHECK(request.sampling().temperature() == 0.0F);
  CHECK(request.sampling().top_k() == 4);
  CHECK(request.sampling().seed() == UINT64_MAX);
  REQUIRE(request.sampling().stop_strings_size() == 1);
  CHECK(request.sampling().stop_strings(0) == "s");
}

TEST_CASE("a line says how its request is scheduled") {
  v1::GenerateRequest request;
  REQUIRE(Parse(R"({"prompt": "x", "priority": -5, "timeout_seconds": 1.5, "skip_reading_prefix_cache": true})",
                request, "--priority 7 --cache-salt s")
              .ok());
  CHECK(request.priority() == -5);
  CHECK(request.timeout_seconds() == 1.5);
  CHECK(request.skip_reading_prefix_cache());
  CHECK(request.cache_salt() == "s");
  REQUIRE(Parse(R"({"prompt": "x", "cache_salt": "t"})", request, "--skip-prefix-cache").ok());
  CHECK(request.cache_salt() == "t");
  CHECK(request.skip_reading_prefix_cache());
  CHECK_FALSE(request.has_timeout_seconds());
}

TEST_CASE("messages are sent as they are, and prompts as the flags say") {
  v1::GenerateRequest request;
  REQUIRE(Parse(R"({"messages": [{"role": "user", "content": "hi"}]})", request, "--system S").ok());
  CHECK(request.chat().messages_size() == 1);
  REQUIRE(Parse(R"({"prompt": "hi"})", request, "--system S").ok());
  REQUIRE(request.chat().messages_size() == 2);
  CHECK(request.chat().messages(0).role() == "system");
  CHECK(request.chat().messages(1).content() == "hi");
}

TEST_CASE("a bad line is told by key, value and what is accepted") {
  v1::GenerateRequest request;
  const auto message = [&](const std::string& line) { return Parse(line, request).error_message(); };
  CHECK_THAT(message("[1]"), ContainsSubstring("line 7: expected a JSON object"));
  CHECK_THAT(message("{}"), ContainsSubstring("exactly one of prompt and messages"));
  CHECK_THAT(message(R"({"prompt": "x", "messages": []})"), ContainsSubstring("exactly one"));
  CHECK(message(R"({"prompt": 1})") == "prompt: got 1, expected a string");
  CHECK_THAT(message(R"({"messages": []})"), ContainsSubstring("messages: got [], expected a list"));
  CHECK_THAT(message(R"({"messages": [{"role": "user"}]})"), ContainsSubstring("got {\"role\":\"user\"}"));
  CHECK(message(R"({"prompt": "x", "top_k": 1.5})") == "top_k: got 1.5, expected an integer");
  CHECK(message(R"({"prompt": "x", "top_k": 4294967296})") == "top_k: got 4294967296, expected an integer");
  CHECK(message(R"({"prompt": "x", "seed": -1})") == "seed: got -1, expected an integer in [0, 2^64)");
  CHECK(message(R"({"prompt": "x", "priority": "high"})") == "priority: got \"high\", expected an integer");
  CHECK_THAT(message(R"({"prompt": "x", "max_token": 1})"), ContainsSubstring("key: got \"max_token\", expected one"));
  CHECK_THAT(message(R"({"prompt": "x", "id": []})"), ContainsSubstring("id: got []"));
}

}  // namespace
}  // namespace quire
