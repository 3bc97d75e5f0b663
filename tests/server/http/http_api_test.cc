// The HTTP front over a real socket, with the real engine.
#include <httplib.h>

#include <atomic>
#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include "server/messages/proto_json.h"
#include "tests/server/gate.h"
#include "tests/server/http/http_client.h"
#include "tests/server/test_server.h"
#include "tests/support/fake_clock.h"

namespace quire::testing {
namespace {

using nlohmann::json;

json Chat(const json& more = json::object()) {
  json body = {{"messages", {{{"role", "user"}, {"content", "abc"}}}}};
  body.update(more);
  return body;
}

// The events of a stream, without "[DONE]", which must be the last.
std::vector<json> EventsOf(const std::string& body) {
  std::vector<json> events;
  std::istringstream lines(body);
  bool is_done = false;
  for (std::string line; std::getline(lines, line);) {
    if (line.empty()) continue;
    CHECK_FALSE(is_done);
    REQUIRE(line.starts_with("data: "));
    is_done = line == "data: [DONE]";
    if (!is_done) events.push_back(json::parse(line.substr(6)));
  }
  CHECK(is_done);
  return events;
}

TEST_CASE("a chat is answered whole, in OpenAI's form") {
  TestServer server(WithHttp());
  HttpClient client(server);
  const auto response = client.Post("/v1/chat/completions", Chat({{"model", "test-model"}}));
  REQUIRE(response.code == 200);
  const json& body = response.body;
  CHECK(body["object"] == "chat.completion");
  CHECK(body["model"] == "test-model");
  CHECK(body["id"] == response.request_id);
  CHECK(body["created"].get<int64_t>() > 1'700'000'000);
  REQUIRE(body["choices"].size() == 1);
  CHECK(body["choices"][0]["message"]["role"] == "assistant");
  CHECK(body["choices"][0]["message"]["content"] == "hello");
  CHECK(body["choices"][0]["finish_reason"] == "stop");
  CHECK(body["choices"][0]["logprobs"].is_null());
  CHECK(body["usage"]["completion_tokens"] == 6);
  CHECK(body["usage"]["total_tokens"] == body["usage"]["prompt_tokens"].get<int>() + 6);
  CHECK(server.PollUntilIdle());
}

TEST_CASE("a streamed chat says what the whole one does") {
  TestServer server(WithHttp());
  HttpClient client(server);
  const std::string stream = client.PostForText(
      "/v1/chat/completions", Chat({{"stream", true}, {"stream_options", {{"include_usage", true}}}}));
  std::vector<json> events = EventsOf(stream);
  REQUIRE(events.size() >= 4);
  CHECK(events.front()["choices"][0]["delta"]["role"] == "assistant");
  CHECK(events.back()["choices"].empty());
  CHECK(events.back()["usage"]["completion_tokens"] == 6);
  events.pop_back();
  CHECK(events.back()["choices"][0]["finish_reason"] == "stop");
  std::string text;
  std::set<std::string> ids;
  for (const json& event : events) {
    CHECK(event["object"] == "chat.completion.chunk");
    text += event["choices"][0]["delta"].value("content", "");
    ids.insert(event["id"]);
  }
  CHECK(text == "hello");
  CHECK(ids.size() == 1);
}

TEST_CASE("several prompts and choices are answered in order, each prompt counted once") {
  TestServer server(WithHttp());
  HttpClient client(server);
  for (const bool stream : {false, true}) {
    const json request = {{"prompt", {"ab", "xyz"}}, {"n", 2}, {"max_tokens", 3}, {"seed", 1}, {"stream", stream}};
    std::vector<std::string> texts(4);
    std::vector<std::string> reasons(4);
    if (stream) {
      for (const json& event : EventsOf(client.PostForText("/v1/completions", request))) {
        const json& choice = event["choices"][0];
        texts[choice["index"]] += choice["text"].get<std::string>();
        if (!choice["finish_reason"].is_null()) reasons[choice["index"]] = choice["finish_reason"];
      }
    } else {
      const auto response = client.Post("/v1/completions", request);
      REQUIRE(response.code == 200);
      CHECK(response.body["object"] == "text_completion");
      CHECK(response.body["usage"]["prompt_tokens"] == 5);
      CHECK(response.body["usage"]["completion_tokens"] == 12);
      for (const json& choice : response.body["choices"]) {
        texts[choice["index"]] = choice["text"];
        reasons[choice["index"]] = choice["finish_reason"];
      }
    }
    CHECK(texts == std::vector<std::string>(4, "hel"));
    CHECK(reasons == std::vector<std::string>(4, "length"));
  }
}

TEST_CASE("log-probabilities come in each API's form") {
  TestServer server(WithHttp());
  HttpClient client(server);
  const auto chat =
      client.Post("/v1/chat/completions", Chat({{"logprobs", true}, {"top_logprobs", 2}, {"max_tokens", 2}}));
  REQUIRE(chat.code == 200);
  const json& content = chat.body["choices"][0]["logprobs"]["content"];
  REQUIRE(content.size() == 2);
  CHECK(content[0]["token"] == "h");
  CHECK(content[0]["bytes"] == json({'h'}));
  CHECK(content[0]["logprob"].get<double>() <= 0);
  CHECK(content[0]["top_logprobs"].size() == 2);
  CHECK(content[0]["top_logprobs"][0]["token"] == "h");

  const auto completion = client.Post("/v1/completions", {{"prompt", "a"}, {"logprobs", 1}, {"max_tokens", 3}});
  REQUIRE(completion.code == 200);
  const json& logprobs = completion.body["choices"][0]["logprobs"];
  CHECK(logprobs["tokens"] == json({"h", "e", "l"}));
  CHECK(logprobs["text_offset"] == json({0, 1, 2}));
  CHECK(logprobs["token_logprobs"].size() == 3);
  CHECK(logprobs["top_logprobs"][1].contains("e"));
}

TEST_CASE("a stop string ends the text before it") {
  TestServer server(WithHttp());
  HttpClient client(server);
  const auto response = client.Post("/v1/completions", {{"prompt", "a"}, {"stop", {"lo", "x"}}});
  CHECK(response.body["choices"][0]["text"] == "hel");
  CHECK(response.body["choices"][0]["finish_reason"] == "stop");
}

TEST_CASE("errors have OpenAI's object and the code that clients expect") {
  TestServer server(WithHttp());
  HttpClient client(server);
  const auto check = [&](const HttpResponse& response, int code, const json& param) {
    CHECK(response.code == code);
    REQUIRE(response.body.contains("error"));
    CAPTURE(response.body.dump());
    CHECK(response.body["error"]["param"] == param);
    CHECK_FALSE(response.body["error"]["message"].get<std::string>().empty());
    CHECK(response.body["error"]["type"].is_string());
  };
  check(client.Post("/v1/chat/completions", Chat({{"model", "another"}})), 404, nullptr);
  check(client.Post("/v1/chat/completions", Chat({{"temperature", -1}})), 400, "temperature");
  check(client.Post("/v1/chat/completions", Chat({{"what", 1}})), 400, "what");
  check(client.Post("/v1/chat/completions", {{"messages", json::array()}}), 400, "messages");
  check(client.Post("/v1/completions", {{"prompt", ""}}), 400, "prompt");
  check(client.Post("/v1/completions", {{"prompt", {1, 999}}}), 400, "prompt[1]");
  check(client.Post("/v1/completions", {{"prompt", std::string(2000, 'a')}}), 400, "prompt");
  check(client.Post("/v1/completions", {{"prompt", "a"}, {"stop", {""}}}), 400, "stop[0]");
  check(client.Post("/v1/completions", {{"prompt", "a"}, {"timeout_seconds", -1}}), 400, "timeout_seconds");
  check(client.PostText("/v1/completions", "{"), 400, "body");
  check(client.PostText("/v1/completions", std::string(5 << 20, ' ')), 413, nullptr);
  check(client.PostText("/v1/nothing", "{}"), 404, nullptr);
  check(client.Get("/v1/models/another"), 404, nullptr);
  check(client.Get("/", {{"Origin", "https://elsewhere.example"}}), 403, nullptr);
  // None of it has disturbed the connection or the server.
  CHECK(client.Post("/v1/completions", {{"prompt", "a"}}).code == 200);
}

TEST_CASE("tokens and text, models, health and the cache") {
  TestServer server(WithHttp());
  HttpClient client(server);
  const auto tokens = client.Post("/tokenize", {{"prompt", "ab"}});
  CHECK(tokens.body["tokens"] == json({'a', 'b'}));
  CHECK(tokens.body["count"] == 2);
  CHECK(client.Post("/tokenize", {{"messages", {{{"role", "user"}, {"content", "x"}}}}}).body["count"].get<int>() > 1);
  CHECK(client.Post("/tokenize", json::object()).body["error"]["param"] == "prompt");
  CHECK(client.Post("/detokenize", {{"tokens", {'o', 'k'}}}).body["prompt"] == "ok");
  CHECK(client.Post("/detokenize", {{"tokens", {-1}}}).body["error"]["param"] == "tokens[0]");
  CHECK(client.Post("/detokenize", {{"tokens", {100000}}}).body["error"]["param"] == "tokens[0]");
  CHECK(client.Get("/v1/models").body["data"][0]["id"] == "test-model");
  CHECK(client.Get("/v1/models/test-model").body["object"] == "model");
  CHECK(client.Get("/health").code == 200);
  CHECK(client.Get("/ready").code == 200);

  grpc::ClientContext context;
  v1::GetCacheStatsRequest request;
  request.set_include_requests(true);
  v1::CacheStats stats;
  json cache = client.Get("/v1/cache").body;
  REQUIRE(server.cache().GetCacheStats(&context, request, &stats).ok());
  json expected = ToJson(stats);
  for (const char* changing : {"process_resident_bytes", "process_peak_resident_bytes"}) {
    cache.erase(changing);
    expected.erase(changing);
  }
  CHECK(cache == expected);
  CHECK(cache["blocks_total"] == 256);
  CHECK(cache["memory_items"].size() == static_cast<size_t>(stats.memory_items_size()));
}

TEST_CASE("a full queue is 429 and a passed deadline 504") {
  Gate gate;
  FakeClock clock;
  TestServerOptions options = WithHttp();
  options.max_num_seqs = 1;
  options.queue_limits.max_queued_requests = 1;
  options.execute_gate = &gate;
  options.clock = &clock;
  TestServer server(options);
  HttpResponse late;
  std::thread running(
      [&] { late = HttpClient(server).Post("/v1/completions", {{"prompt", "a"}, {"timeout_seconds", 5}}); });
  gate.WaitUntilHeld();
  grpc::ClientContext context;
  const auto waiting = server.generation().GenerateStream(&context, TextRequest("waiting"));
  v1::GenerateStreamResponse response;
  REQUIRE(waiting->Read(&response));
  const auto refused = HttpClient(server).Post("/v1/completions", {{"prompt", "b"}});
  CHECK(refused.code == 429);
  CHECK(refused.retry_after == "1");
  CHECK(refused.body["error"]["type"] == "rate_limit_error");
  clock.Advance(std::chrono::seconds(6));
  gate.Open();
  running.join();
  CHECK(late.code == 504);
  while (waiting->Read(&response)) continue;
  CHECK(waiting->Finish().ok());
}

TEST_CASE("draining refuses with 503, ends nothing that runs, and readiness says so") {
  Gate gate;
  TestServerOptions options = WithHttp();
  options.execute_gate = &gate;
  TestServer server(options);
  HttpResponse answered;
  std::thread running([&] { answered = HttpClient(server).Post("/v1/completions", {{"prompt", "a"}}); });
  gate.WaitUntilHeld();
  grpc::ClientContext context;
  v1::DrainResponse drained;
  REQUIRE(server.admin().Drain(&context, {}, &drained).ok());
  HttpClient client(server);
  CHECK(client.Get("/ready").code == 503);
  CHECK(client.Get("/health").code == 200);
  const auto refused = client.Post("/v1/completions", {{"prompt", "b"}});
  CHECK(refused.code == 503);
  CHECK_FALSE(refused.retry_after.empty());
  gate.Open();
  running.join();
  CHECK(answered.code == 200);
}

TEST_CASE("a client that goes away ends its request, streamed or whole") {
  TestServer server(WithHttp(EndlessAnswers()));
  for (const bool stream : {false, true}) {
    {
      RawConnection connection(server);
      connection.SendRequest("/v1/completions", {{"prompt", "a"}, {"max_tokens", 1 << 20}, {"stream", stream}});
      CHECK(server.PollStats([](const v1::CacheStats& stats) { return stats.requests_running() == 1; }));
    }
    CHECK(server.PollUntilIdle());
  }
  CHECK(server.runner().num_steps() < kEndless / 2);
}

TEST_CASE("connections are bounded in number and in time") {
  TestServerOptions options = WithHttp();
  options.http_max_connections = 2;
  options.http_request_seconds = 0.5;
  TestServer server(options);
  RawConnection slow(server);
  slow.Send("POST /v1/completions HTTP/1.1\r\nContent-Length: 100\r\nX-Slow: ");
  RawConnection idle(server);
  idle.Send("GET /health HTTP/1.1\r\n\r\n");
  CHECK(idle.ReadUntil("ok").find("200 OK") != std::string::npos);
  RawConnection third(server);
  third.Send("GET /health HTTP/1.1\r\n\r\n");
  const std::string refused = third.ReadToEnd();
  CHECK(refused.find("503 Service Unavailable") != std::string::npos);
  CHECK(refused.find("http-max-connections") != std::string::npos);
  // Trickles on: each byte is in time, the request is not.
  while (slow.Send("x")) std::this_thread::yield();
  CHECK(slow.ReadToEnd().find("200") == std::string::npos);
  RawConnection fourth(server);
  fourth.Send("GET /health HTTP/1.1\r\nConnection: close\r\n\r\n");
  CHECK(fourth.ReadToEnd().find("200 OK") != std::string::npos);
}

TEST_CASE("the page and what it needs come from this server alone") {
  TestServer server(WithHttp());
  HttpClient client(server);
  const std::string page = client.GetText("/");
  CHECK(page.starts_with("<!doctype html>"));
  CHECK(page.find("://") == std::string::npos);
  CHECK(page.find("v1/chat/completions") != std::string::npos);
}

TEST_CASE("bytes behind a request whose end is not clear are no request") {
  TestServer server(WithHttp());
  const std::string next = "GET /ready HTTP/1.1\r\n\r\n";
  const std::string body = R"({"prompt": "abc"})";
  const std::string length = "Content-Length: " + std::to_string(body.size()) + "\r\n";
  const std::string post = "POST /tokenize HTTP/1.1\r\n" + length;
  for (const std::string& unclear : {"nonsense\r\n\r\n" + next, post + "Content-Length: 3\r\n\r\n" + body + next,
                                     post + "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + next,
                                     "GET /health HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n" + next,
                                     "GET /health HTTP/1.1\r\nContent-Length: " + std::to_string(next.size()) +
                                         "\r\nConnection: close\r\n\r\n" + next}) {
    INFO(unclear);
    RawConnection connection(server);
    connection.Send(unclear);
    const std::string answer = connection.ReadToEnd();
    CHECK(answer.starts_with("HTTP/1.1 "));
    CHECK(answer.find("HTTP/1.1 ", 1) == std::string::npos);
  }
  // What is clear is served, and what follows it too; a body that nobody wants is no request either.
  RawConnection connection(server);
  connection.Send("GET /health HTTP/1.1\r\nContent-Length: " + std::to_string(next.size()) + "\r\n\r\n" + next);
  connection.Send("GET /metrics HTTP/1.1\r\nConnection: close\r\n\r\n");
  const std::string answers = connection.ReadToEnd();
  CHECK(answers.find("# TYPE") != std::string::npos);
  CHECK(answers.find("HTTP/1.1 ", answers.find("HTTP/1.1 ", 1) + 1) == std::string::npos);
}

}  // namespace
}  // namespace quire::testing
