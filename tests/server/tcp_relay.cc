#include "tests/server/tcp_relay.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <stdexcept>

namespace quire::testing {
namespace {

constexpr int kPollMilliseconds = 5;

sockaddr_in Loopback(int port) {
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

// What was relayed; empty at the connection's end.
std::string Copy(int from, int to) {
  std::array<char, 65536> bytes;
  const ssize_t count = recv(from, bytes.data(), bytes.size(), 0);
  if (count <= 0 || send(to, bytes.data(), static_cast<size_t>(count), MSG_NOSIGNAL) != count) return "";
  return std::string(bytes.data(), static_cast<size_t>(count));
}

}  // namespace

TcpRelay::TcpRelay(const std::string& target) : target_port_(std::stoi(target.substr(target.rfind(':') + 1))) {
  listener_ = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = Loopback(0);
  socklen_t size = sizeof(address);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(listener_, generic, size) != 0 || listen(listener_, 1) != 0 || getsockname(listener_, generic, &size) != 0) {
    throw std::runtime_error("the relay can't listen");
  }
  address_ = "127.0.0.1:" + std::to_string(ntohs(address.sin_port));
  thread_ = std::thread([this] { Run(); });
}

TcpRelay::~TcpRelay() {
  Cut();
  close(listener_);
}

void TcpRelay::Cut() {
  cut_ = true;
  if (thread_.joinable()) thread_.join();
}

std::string TcpRelay::from_server() const {
  const std::lock_guard lock(mutex_);
  return from_server_;
}

void TcpRelay::Run() {
  pollfd wait = {.fd = listener_, .events = POLLIN, .revents = 0};
  while (!cut_ && poll(&wait, 1, kPollMilliseconds) == 0) continue;
  if (cut_) return;
  const int client = accept(listener_, nullptr, nullptr);
  const int server = socket(AF_INET, SOCK_STREAM, 0);
  const sockaddr_in address = Loopback(target_port_);
  bool alive = connect(server, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0;
  while (alive && !cut_) {
    std::array<pollfd, 2> ends = {
        {{.fd = client, .events = POLLIN, .revents = 0}, {.fd = server, .events = POLLIN, .revents = 0}}};
    if (poll(ends.data(), ends.size(), kPollMilliseconds) <= 0) continue;
    if (ends[0].revents != 0) alive = !Copy(client, server).empty();
    if (!alive || ends[1].revents == 0) continue;
    // Under the lock, so that what a client has seen is in from_server().
    const std::lock_guard lock(mutex_);
    const std::string bytes = Copy(server, client);
    alive = !bytes.empty();
    from_server_ += bytes;
  }
  close(client);
  close(server);
}

}  // namespace quire::testing
