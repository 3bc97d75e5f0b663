// Pages of other sites, as browsers let them ask.
#include "server/http/cross_origin.h"

#include <httplib.h>

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "engine/base/status.h"
#include "tests/server/http/http_client.h"
#include "tests/server/test_server.h"

namespace quire::testing {
namespace {

constexpr const char* kAllowed = "https://chat.example";

httplib::Response Ask(const TestServer& server, const std::string& method, const std::string& origin) {
  httplib::Client client("http://" + server.http_address());
  httplib::Request request;
  request.method = method;
  request.path = "/v1/models";
  request.headers = {{"Origin", origin}};
  const httplib::Result result = client.send(request);
  REQUIRE(result);
  return result.value();
}

TEST_CASE("a site that is named may ask, and no other") {
  TestServerOptions options = WithHttp();
  options.http_allowed_origins = "http://localhost:3000,https://chat.example";
  TestServer server(options);
  const httplib::Response answer = Ask(server, "GET", kAllowed);
  CHECK(answer.status == 200);
  CHECK(answer.get_header_value("Access-Control-Allow-Origin") == kAllowed);
  CHECK(answer.get_header_value("Vary") == "Origin");
  const httplib::Response preflight = Ask(server, "OPTIONS", kAllowed);
  CHECK(preflight.status == 204);
  CHECK(preflight.get_header_value("Access-Control-Allow-Origin") == kAllowed);
  CHECK(preflight.get_header_value("Access-Control-Allow-Headers").find("Authorization") != std::string::npos);
  for (const char* other : {"https://chat.example.evil", "http://chat.example", "https://elsewhere.example", "null"}) {
    const httplib::Response refused = Ask(server, "OPTIONS", other);
    CHECK(refused.status == 403);
    CHECK_FALSE(refused.has_header("Access-Control-Allow-Origin"));
  }
}

TEST_CASE("without a setting no other site may ask, and with a star all may") {
  TestServer closed(WithHttp());
  CHECK(Ask(closed, "GET", kAllowed).status == 403);
  CHECK(Ask(closed, "OPTIONS", kAllowed).status == 403);
  CHECK(Ask(closed, "GET", "http://" + closed.http_address()).status == 200);  // its own page
  TestServerOptions options = WithHttp();
  options.http_allowed_origins = "*";
  TestServer open(options);
  CHECK(Ask(open, "GET", kAllowed).status == 200);
}

TEST_CASE("a server without keys is not reached by a name that somebody's DNS turned to it") {
  TestServer server(WithHttp());
  const auto code_for = [&](const std::string& host) {
    httplib::Client client("http://" + server.http_address());
    const httplib::Result result = client.Get("/v1/cache", {{"Host", host}});
    REQUIRE(result);
    return result->status;
  };
  CHECK(code_for("evil.example:80") == 403);
  CHECK(code_for("127.evil.example") == 403);
  for (const char* host : {"localhost:8000", "localhost", "127.0.0.1", "[::1]:8000", "192.168.0.7:8000"}) {
    INFO(host);
    CHECK(code_for(host) == 200);
  }
}

TEST_CASE("what is no origin is refused by name") {
  for (const char* bad : {"chat.example", "https://chat.example/", "https://", "ftp://chat.example", "https://a b"}) {
    INFO(bad);
    CHECK(FieldOf(AllowedOrigins::Parse("http_allowed_origins", bad).status()) == "http_allowed_origins");
  }
  CHECK(AllowedOrigins::Parse("http_allowed_origins", "").ok());
}

}  // namespace
}  // namespace quire::testing
