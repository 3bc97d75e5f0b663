#pragma once

#include <httplib.h>

#include <chrono>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/server/test_server.h"

namespace quire::testing {

// `options` with HTTP on a free port.
TestServerOptions WithHttp(TestServerOptions options = {});

struct HttpResponse {
  int code = 0;
  nlohmann::json body;
  std::string request_id;   // X-Request-Id
  std::string retry_after;  // Retry-After
};

// One connection, kept open. Each call throws if there is no response.
class HttpClient {
 public:
  explicit HttpClient(const TestServer& server);

  HttpResponse Post(const std::string& path, const nlohmann::json& body);
  HttpResponse PostText(const std::string& path, const std::string& body);
  HttpResponse Get(const std::string& path, const httplib::Headers& headers = {});
  std::string GetText(const std::string& path);
  std::string PostForText(const std::string& path, const nlohmann::json& body);

 private:
  httplib::Client client_;
};

// A connection that sends and reads bytes as they are.
class RawConnection {
 public:
  explicit RawConnection(const TestServer& server);
  ~RawConnection();
  RawConnection(const RawConnection&) = delete;
  RawConnection& operator=(const RawConnection&) = delete;

  // False once the other side has closed.
  bool Send(const std::string& bytes);
  void SendRequest(const std::string& path, const nlohmann::json& body);
  // What has come when `end` has, or when the connection is closed.
  std::string ReadUntil(const std::string& end);
  std::string ReadToEnd() { return ReadUntil("no response holds this"); }
  // True if bytes have come, or the end, within `time`.
  bool WaitForBytes(std::chrono::milliseconds time) const;
  // The other side finds no more bytes than it was sent, and can still answer.
  void EndSending();

 private:
  int socket_ = -1;
};

}  // namespace quire::testing
