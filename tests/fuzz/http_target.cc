// What a connection to the HTTP port may bring, given to a whole server.
#include <chrono>
#include <string>

#include "engine/base/check.h"
#include "tests/fuzz/fuzz_target.h"
#include "tests/server/http/http_client.h"
#include "tests/server/test_server.h"

namespace quire::testing {
namespace {

// How long bytes that may be an unfinished request are left without an answer, before the connection is ended.
constexpr std::chrono::milliseconds kAnswerTime(20);
constexpr int kInputsBetweenChecks = 256;

constexpr std::string_view kStages[] = {"answered", "served"};
constexpr std::string_view kWords[] = {"\r\n",
                                       "\r\n\r\n",
                                       "GET ",
                                       "POST ",
                                       "HEAD ",
                                       "OPTIONS ",
                                       "PUT ",
                                       " HTTP/1.1\r\n",
                                       " HTTP/1.0\r\n",
                                       "/v1/models",
                                       "/v1/cache?requests=1",
                                       "/v1/chat/completions",
                                       "/v1/completions",
                                       "/tokenize",
                                       "/detokenize",
                                       "/metrics",
                                       "/health",
                                       "Content-Length: 5\r\n",
                                       "Content-Length: 18446744073709551615\r\n",
                                       "Transfer-Encoding: chunked\r\n",
                                       "Connection: close\r\n",
                                       "Connection: keep-alive\r\n",
                                       "Expect: 100-continue\r\n",
                                       "X-Request-Id: \xff\xfe\r\n",
                                       "x-tenant-id: a\r\n",
                                       "Authorization: Bearer x\r\n",
                                       "Origin: http://a\r\n",
                                       "Accept-Encoding: gzip\r\n",
                                       "Range: bytes=0-1,2-3\r\n",
                                       "Content-Encoding: gzip\r\n",
                                       "Content-Type: multipart/form-data; boundary=b\r\n",
                                       "Content-Type: application/x-www-form-urlencoded\r\n",
                                       "0\r\n\r\n",
                                       "ffffffffffffffff\r\n",
                                       "%00",
                                       "%",
                                       "../",
                                       "#"};

class HttpConnections final : public FuzzTarget {
 public:
  size_t Run(std::string_view input) override {
    if (++num_inputs_ % kInputsBetweenChecks == 0) CheckServer();
    RawConnection connection(server_);
    connection.Send(std::string(input));
    // An answer that has begun is not waited for: the client that goes away in its middle is a case too.
    connection.WaitForBytes(kAnswerTime);
    connection.EndSending();
    const std::string answer = connection.ReadToEnd();
    if (answer.empty()) return 0;
    QUIRE_CHECK(answer.starts_with("HTTP/1."));
    return answer.starts_with("HTTP/1.1 200") ? 2 : 1;
  }

  ~HttpConnections() override { CheckServer(); }

 private:
  // The requests are gone, and others are served over both protocols.
  void CheckServer() {
    QUIRE_CHECK(server_.PollUntilIdle());
    HttpClient client(server_);
    QUIRE_CHECK(client.Get("/ready").code == 200);
    QUIRE_CHECK(client.Post("/v1/completions", {{"prompt", "hi"}}).code == 200);
  }

  TestServer server_{WithHttp()};
  int num_inputs_ = 0;
};

}  // namespace

FuzzTargetKind HttpTarget() {
  return {"http", kStages, kWords, [] { return std::make_unique<HttpConnections>(); }};
}

}  // namespace quire::testing
