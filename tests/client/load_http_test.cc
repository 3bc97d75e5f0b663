// `quire load --http` against a server that speaks as OpenAI-compatible ones do, in this process.
#include <grpcpp/grpcpp.h>
#include <httplib.h>

#include <catch2/catch_test_macros.hpp>
#include <catch2/matchers/catch_matchers_string.hpp>
#include <nlohmann/json.hpp>

#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "client/load_http.h"
#include "client/server_sent_events.h"
#include "tests/client/run_quire.h"

namespace quire::testing {
namespace {

using Catch::Matchers::ContainsSubstring;

// What it streams is what a test sets, before the first request.
class FakeHttpServer {
 public:
  // Writes events; the stream ends when it returns.
  using Events = std::function<void(httplib::DataSink& sink)>;

  FakeHttpServer() {
    server_.Get("/v1/models", [this](const httplib::Request&, httplib::Response& response) {
      response.set_content(models, "application/json");
    });
    server_.Post("/v1/completions", [this](const httplib::Request& request, httplib::Response& response) {
      {
        const std::lock_guard lock(mutex_);
        bodies_.push_back(Json::parse(request.body));
        tenants_.push_back(request.get_header_value("x-tenant-id"));
      }
      if (http_status != 200) {
        response.status = http_status;
        response.set_content("come back later", "text/plain");
        return;
      }
      response.set_chunked_content_provider("text/event-stream", [this](size_t, httplib::DataSink& sink) {
        events(sink);
        sink.done();
        return true;
      });
    });
    port_ = server_.bind_to_any_port("127.0.0.1");
    thread_ = std::thread([this] { server_.listen_after_bind(); });
    server_.wait_until_ready();
  }
  ~FakeHttpServer() {
    server_.stop();
    thread_.join();
  }

  std::string url() const { return "http://127.0.0.1:" + std::to_string(port_); }
  std::vector<Json> bodies() const {
    const std::lock_guard lock(mutex_);
    return bodies_;
  }
  std::vector<std::string> tenants() const {
    const std::lock_guard lock(mutex_);
    return tenants_;
  }

  Events events;
  int http_status = 200;
  std::string models = R"({"data": [{"id": "small", "meta": {"n_vocab": 50}}]})";

 private:
  httplib::Server server_;
  int port_ = 0;
  std::thread thread_;
  mutable std::mutex mutex_;
  std::vector<Json> bodies_;
  std::vector<std::string> tenants_;
};

bool Write(httplib::DataSink& sink, const std::string& text) { return sink.write(text.data(), text.size()); }

bool WriteText(httplib::DataSink& sink, const std::string& text) {
  return Write(sink, "data: " + Json{{"choices", {{{"text", text}}}}}.dump() + "\n\n");
}

void StreamThreeTokens(httplib::DataSink& sink) {
  WriteText(sink, "a");
  WriteText(sink, "b");
  // The usage may come in pieces, with the choices empty, and tell of a token that no event showed.
  Write(sink, R"(data: {"choices": [], "usage": {"completion_tokens": 3, "prompt_tok)");
  Write(sink, "ens_details\": {\"cached_tokens\": 2}}}\n\ndata: [DONE]\n\n");
}

TEST_CASE("events are split wherever the pieces end, and only their data counts") {
  const std::string body = ": a comment\r\nevent: x\r\ndata: one\r\ndata:two\r\n\r\n\nerror: {}\n\ndata: cut";
  for (size_t size = 1; size <= body.size(); ++size) {
    ServerSentEvents events;
    std::vector<std::string> taken;
    for (size_t begin = 0; begin < body.size(); begin += size) {
      const auto some = events.Take(std::string_view(body).substr(begin, size));
      taken.insert(taken.end(), some.begin(), some.end());
    }
    CHECK(taken == std::vector<std::string>{"one\ntwo", "{}"});
  }
}

TEST_CASE("an endpoint is an origin and a path") {
  const auto plain = ParseHttpEndpoint("http://localhost:8080");
  REQUIRE(plain);
  CHECK(plain->origin == "http://localhost:8080");
  CHECK(plain->path.empty());
  const auto nested = ParseHttpEndpoint("https://host/a/b/");
  REQUIRE(nested);
  CHECK(nested->origin == "https://host");
  CHECK(nested->path == "/a/b");
  for (const char* url : {"localhost:8080", "ftp://host", "http://", "http:///v1", "http://host/?x=1"}) {
    CHECK_FALSE(ParseHttpEndpoint(url));
  }
}

TEST_CASE("load over HTTP sends what it sends over gRPC and reports the same") {
  FakeHttpServer server;
  server.events = StreamThreeTokens;
  const RunResult result =
      RunQuire({"load", "--http", server.url(), "--requests", "6", "--concurrency", "2", "--prompt-tokens", "10",
                "--output-tokens", "3", "--tenant", "blue", "--http-body", R"({"cache_prompt": false})", "--json"});
  CHECK(result.code == ExitCode::kOk);
  const Json report = Json::parse(result.out);
  CHECK(report["by_status"] == Json{{"OK", 6}});
  CHECK(report["output_tokens"] == 18);
  CHECK(report["prompt_tokens"] == 60);
  CHECK(report["cached_prompt_tokens"] == 12);
  CHECK(report["inter_token_seconds"]["count"] == 6);
  CHECK(report["good_requests"] == 6);
  const std::vector<Json> bodies = server.bodies();
  REQUIRE(bodies.size() == 6);
  for (const Json& body : bodies) {
    CHECK(body["model"] == "small");
    CHECK(body["prompt"].size() == 10);
    CHECK(*std::max_element(body["prompt"].begin(), body["prompt"].end()) < 50);
    CHECK(body["max_tokens"] == 3);
    CHECK(body["temperature"] == 0);
    CHECK(body["ignore_eos"] == true);
    CHECK(body["stream"] == true);
    CHECK(body["cache_prompt"] == false);
  }
  CHECK(server.tenants() == std::vector<std::string>(6, "blue"));
}

TEST_CASE("failures over HTTP count by the status they mean") {
  FakeHttpServer server;
  std::string expected;
  SECTION("refused") {
    server.http_status = 429;
    expected = "RESOURCE_EXHAUSTED";
  }
  SECTION("told by an event") {
    server.events = [](httplib::DataSink& sink) {
      WriteText(sink, "a");
      Write(sink, "error: {\"code\": 503, \"message\": \"loading\"}\n\n");
    };
    expected = "UNAVAILABLE";
  }
  SECTION("ended early") {
    server.events = [](httplib::DataSink& sink) { WriteText(sink, "a"); };
    expected = "INTERNAL";
  }
  SECTION("no JSON") {
    server.events = [](httplib::DataSink& sink) { Write(sink, "data: {\n\n"); };
    expected = "INTERNAL";
  }
  SECTION("late") {
    server.events = [](httplib::DataSink& sink) {
      while (WriteText(sink, "a")) {
      }
    };
    expected = "DEADLINE_EXCEEDED";
  }
  const RunResult result = RunQuire({"load", "--http", server.url(), "--requests", "3", "--timeout", "0.2", "--json"});
  CHECK(result.code == ExitCode::kFailed);
  CHECK(Json::parse(result.out)["by_status"] == Json{{expected, 3}});
}

TEST_CASE("cancellations over HTTP end the stream and are no failures") {
  FakeHttpServer server;
  server.events = [](httplib::DataSink& sink) {
    while (WriteText(sink, "a")) {
    }
  };
  const RunResult result =
      RunQuire({"load", "--http", server.url(), "--requests", "5", "--cancel-ratio", "1", "--json"});
  CHECK(result.code == ExitCode::kOk);
  CHECK(Json::parse(result.out)["cancelled_by_client"] == 5);
}

TEST_CASE("load over HTTP says what is missing") {
  FakeHttpServer server;
  SECTION("nobody there") {
    const RunResult result = RunQuire({"load", "--http", "http://127.0.0.1:1"});
    CHECK(result.code == ExitCode::kCannotConnect);
    CHECK_THAT(result.err, ContainsSubstring("no server answers at http://127.0.0.1:1"));
  }
  SECTION("the vocabulary's size") {
    server.models = R"({"data": [{"id": "small"}]})";
    const RunResult result = RunQuire({"load", "--http", server.url()});
    CHECK(result.code == ExitCode::kUsage);
    CHECK_THAT(result.err, ContainsSubstring("--http-vocab-size"));
  }
  SECTION("a model") {
    server.models = R"({"data": []})";
    const RunResult result = RunQuire({"load", "--http", server.url()});
    CHECK(result.code == ExitCode::kFailed);
    CHECK_THAT(result.err, ContainsSubstring("names no model"));
  }
  SECTION("a URL") { CHECK(RunQuire({"load", "--http", "127.0.0.1:80"}).code == ExitCode::kUsage); }
  SECTION("an object") {
    CHECK(RunQuire({"load", "--http", server.url(), "--http-body", "[1]"}).code == ExitCode::kUsage);
  }
  SECTION("what the flags are about") { CHECK(RunQuire({"load", "--http-body", "{}"}).code == ExitCode::kUsage); }
}

}  // namespace
}  // namespace quire::testing
