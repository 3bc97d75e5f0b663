#include "server/http/http_connection.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <utility>

namespace quire {
namespace {

constexpr Duration kLingerTime = std::chrono::seconds(1);

using GetName = int (*)(int, sockaddr*, socklen_t*);

void ReadAddress(GetName get_name, socket_t socket, std::string& ip, int& port) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  char text[INET6_ADDRSTRLEN] = {};
  if (get_name(socket, reinterpret_cast<sockaddr*>(&address), &size) != 0) return;
  if (address.ss_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(address);
    inet_ntop(AF_INET, &v4.sin_addr, text, sizeof(text));
    port = ntohs(v4.sin_port);
  } else if (address.ss_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(address);
    inet_ntop(AF_INET6, &v6.sin6_addr, text, sizeof(text));
    port = ntohs(v6.sin6_port);
  }
  ip = text;
}

}  // namespace

HttpConnection::HttpConnection(socket_t socket, std::unique_ptr<ByteChannel> channel, Duration write_timeout)
    : socket_(socket), channel_(std::move(channel)), write_timeout_(write_timeout) {}

HttpConnection::~HttpConnection() {
  shutdown(socket_, SHUT_RDWR);
  close(socket_);
}

bool HttpConnection::WaitForRequest(Duration timeout) { return begin_ < end_ || Fill(clock_.Now() + timeout); }

void HttpConnection::Refuse(const std::string& response) {
  write_timeout_ = kLingerTime;
  write(response.data(), response.size());
  EndResponses();
}

// Closing with unread bytes would reset the connection, and the response might be lost with it.
void HttpConnection::EndResponses() {
  shutdown(socket_, SHUT_WR);
  const TimePoint deadline = clock_.Now() + kLingerTime;
  while (Fill(deadline)) begin_ = end_;
}

bool HttpConnection::is_readable() const { return begin_ < end_ || WaitFor(POLLIN, read_deadline_); }

bool HttpConnection::is_writable() const { return channel_->IsOpen(); }

ssize_t HttpConnection::read(char* bytes, size_t size) {
  if (begin_ == end_ && !Fill(read_deadline_)) return -1;
  const size_t taken = std::min(size, end_ - begin_);
  std::memcpy(bytes, buffer_.data() + begin_, taken);
  begin_ += taken;
  return static_cast<ssize_t>(taken);
}

ssize_t HttpConnection::write(const char* bytes, size_t size) {
  const TimePoint deadline = clock_.Now() + write_timeout_;
  if (size == 0) return 0;
  while (true) {
    const ChannelResult result = channel_->Write(bytes, size);
    if (result.outcome == ChannelResult::Outcome::kDone) return result.size;
    if (result.outcome == ChannelResult::Outcome::kClosed || !WaitFor(result.wait_events, deadline)) return -1;
  }
}

void HttpConnection::get_remote_ip_and_port(std::string& ip, int& port) const {
  ReadAddress(getpeername, socket_, ip, port);
}

void HttpConnection::get_local_ip_and_port(std::string& ip, int& port) const {
  ReadAddress(getsockname, socket_, ip, port);
}

bool HttpConnection::Fill(TimePoint deadline) {
  while (true) {
    const ChannelResult result = channel_->Read(buffer_.data(), buffer_.size());
    if (result.outcome == ChannelResult::Outcome::kDone) {
      begin_ = 0;
      end_ = static_cast<size_t>(result.size);
      return true;
    }
    if (result.outcome == ChannelResult::Outcome::kClosed || !WaitFor(result.wait_events, deadline)) return false;
  }
}

bool HttpConnection::WaitFor(short events, TimePoint deadline) const {
  using Milliseconds = std::chrono::duration<int, std::milli>;
  while (true) {
    const Duration left = std::max(deadline - clock_.Now(), Duration::zero());
    pollfd poll_fd = {.fd = socket_, .events = events, .revents = 0};
    const int ready = poll(&poll_fd, 1, std::chrono::ceil<Milliseconds>(left).count());
    if (ready > 0) return true;
    if (ready < 0 && errno != EINTR) return false;
    if (left == Duration::zero()) return false;
  }
}

}  // namespace quire
