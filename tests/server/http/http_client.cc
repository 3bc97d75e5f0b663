#include "tests/server/http/http_client.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <chrono>
#include <stdexcept>

namespace quire::testing {
namespace {

constexpr int kMaxConnects = 10;  // a single one can fail on a loaded machine
constexpr const char* kJsonType = "application/json";

int PortOf(const std::string& address) { return std::stoi(address.substr(address.rfind(':') + 1)); }

const httplib::Response& Required(const httplib::Result& result) {
  if (!result) throw std::runtime_error("no HTTP response: " + httplib::to_string(result.error()));
  return result.value();
}

HttpResponse ToResponse(const httplib::Result& result) {
  const httplib::Response& response = Required(result);
  return {.code = response.status,
          .body = nlohmann::json::parse(response.body, nullptr, /*allow_exceptions=*/false),
          .request_id = response.get_header_value("X-Request-Id"),
          .retry_after = response.get_header_value("Retry-After")};
}

}  // namespace

TestServerOptions WithHttp(TestServerOptions options) {
  options.http_listen = "127.0.0.1:0";
  return options;
}

HttpClient::HttpClient(const TestServer& server) : client_("http://" + server.http_address()) {
  client_.set_keep_alive(true);
  client_.set_read_timeout(std::chrono::seconds(60));
  for (int i = 1; i < kMaxConnects && !client_.Get("/health"); ++i) continue;
}

HttpResponse HttpClient::Post(const std::string& path, const nlohmann::json& body) {
  return PostText(path, body.dump());
}

HttpResponse HttpClient::PostText(const std::string& path, const std::string& body) {
  return ToResponse(client_.Post(path, body, kJsonType));
}

HttpResponse HttpClient::Get(const std::string& path, const httplib::Headers& headers) {
  return ToResponse(client_.Get(path, headers));
}

std::string HttpClient::GetText(const std::string& path) { return Required(client_.Get(path)).body; }

std::string HttpClient::PostForText(const std::string& path, const nlohmann::json& body) {
  return Required(client_.Post(path, body.dump(), kJsonType)).body;
}

RawConnection::RawConnection(const TestServer& server) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(PortOf(server.http_address())));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  for (int i = 0; i < kMaxConnects; ++i) {
    socket_ = socket(AF_INET, SOCK_STREAM, 0);
    if (connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0) return;
    close(socket_);
  }
  throw std::runtime_error("no connection to " + server.http_address());
}

RawConnection::~RawConnection() { close(socket_); }

bool RawConnection::Send(const std::string& bytes) {
  return send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL) == static_cast<ssize_t>(bytes.size());
}

void RawConnection::SendRequest(const std::string& path, const nlohmann::json& body) {
  const std::string text = body.dump();
  Send("POST " + path + " HTTP/1.1\r\nContent-Type: application/json\r\nContent-Length: " +
       std::to_string(text.size()) + "\r\n\r\n" + text);
}

std::string RawConnection::ReadUntil(const std::string& end) {
  std::string text;
  char bytes[4096];
  size_t searched = 0;  // no `end` begins before
  while (text.find(end, searched) == std::string::npos) {
    searched = text.size() < end.size() ? 0 : text.size() - end.size() + 1;
    const ssize_t received = recv(socket_, bytes, sizeof(bytes), 0);
    if (received <= 0) break;
    text.append(bytes, static_cast<size_t>(received));
  }
  return text;
}

bool RawConnection::WaitForBytes(std::chrono::milliseconds time) const {
  pollfd readable = {.fd = socket_, .events = POLLIN, .revents = 0};
  return poll(&readable, 1, static_cast<int>(time.count())) > 0;
}

void RawConnection::EndSending() { shutdown(socket_, SHUT_WR); }

}  // namespace quire::testing
