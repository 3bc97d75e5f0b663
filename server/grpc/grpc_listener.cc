#include "server/grpc/grpc_listener.h"

#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <utility>

#include "absl/strings/numbers.h"
#include "engine/base/log.h"
#include "engine/base/status.h"
#include "server/security/loopback.h"

namespace quire {
namespace {

constexpr int kBacklog = 1024;
constexpr Duration kTellingInterval = std::chrono::minutes(1);
// Without free descriptors there is nothing to do but to wait until some are closed.
constexpr std::chrono::milliseconds kWaitForDescriptors(50);

struct FreeAddresses {
  void operator()(addrinfo* addresses) const { freeaddrinfo(addresses); }
};

std::unique_ptr<addrinfo, FreeAddresses> Resolve(const std::string& host) {
  addrinfo hints = {};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), nullptr, &hints, &found) != 0) return nullptr;
  return std::unique_ptr<addrinfo, FreeAddresses>(found);
}

void SetPort(int port, sockaddr* address) {
  const auto network_port = htons(static_cast<uint16_t>(port));
  if (address->sa_family == AF_INET) reinterpret_cast<sockaddr_in*>(address)->sin_port = network_port;
  if (address->sa_family == AF_INET6) reinterpret_cast<sockaddr_in6*>(address)->sin6_port = network_port;
}

int PortOf(int fd) {
  sockaddr_storage address = {};
  socklen_t size = sizeof(address);
  getsockname(fd, reinterpret_cast<sockaddr*>(&address), &size);
  const bool is_v4 = address.ss_family == AF_INET;
  return ntohs(is_v4 ? reinterpret_cast<const sockaddr_in&>(address).sin_port
                     : reinterpret_cast<const sockaddr_in6&>(address).sin6_port);
}

void SetOption(int fd, int level, int name) {
  const int on = 1;
  setsockopt(fd, level, name, &on, sizeof(on));
}

// A listening socket, or -1. Two servers on one port would share its connections in silence, so no SO_REUSEPORT.
int Listen(const addrinfo& address, int port) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0) return -1;
  SetOption(fd, SOL_SOCKET, SO_REUSEADDR);
  SetPort(port, address.ai_addr);
  if (bind(fd, address.ai_addr, address.ai_addrlen) == 0 && listen(fd, kBacklog) == 0) return fd;
  close(fd);
  return -1;
}

}  // namespace

absl::StatusOr<std::unique_ptr<GrpcListener>> GrpcListener::Bind(const std::string& address) {
  const size_t colon = address.rfind(':');
  std::unique_ptr<GrpcListener> listener(new GrpcListener(address));
  int port = -1;
  const auto addresses = Resolve(HostOf(address));
  const bool is_number = absl::SimpleAtoi(address.substr(colon + 1), &port);
  for (const addrinfo* next = is_number ? addresses.get() : nullptr; next != nullptr; next = next->ai_next) {
    const int fd = Listen(*next, port);
    if (fd < 0) continue;
    port = PortOf(fd);
    listener->listening_fds_.push_back(fd);
  }
  if (listener->listening_fds_.empty()) {
    return InvalidArgument("grpc_listen", address, "an address of this machine whose port is not in use");
  }
  listener->address_ = StrCat(address.substr(0, colon), ":", port);
  return listener;
}

GrpcListener::GrpcListener(std::string address)
    : address_(std::move(address)), epoll_fd_(epoll_create1(EPOLL_CLOEXEC)), stop_fd_(eventfd(0, EFD_CLOEXEC)) {}

GrpcListener::~GrpcListener() {
  eventfd_write(stop_fd_, 1);
  if (thread_.joinable()) thread_.join();
  for (const int fd : listening_fds_) close(fd);
  for (const int fd : open_fds_) close(fd);
  close(stop_fd_);
  close(epoll_fd_);
}

void GrpcListener::Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor,
                         int64_t max_connections, std::function<void()> before_each) {
  acceptor_ = std::move(acceptor);
  max_connections_ = max_connections;
  before_each_ = std::move(before_each);
  Watch(stop_fd_, EPOLLIN);
  for (const int fd : listening_fds_) Watch(fd, EPOLLIN);
  thread_ = std::thread([this] { Run(); });
}

void GrpcListener::Watch(int fd, uint32_t events) const {
  epoll_event event = {.events = events, .data = {.fd = fd}};
  epoll_ctl(epoll_fd_, EPOLL_CTL_ADD, fd, &event);
}

void GrpcListener::Run() {
  std::array<epoll_event, 64> events;
  while (true) {
    const int num_events = epoll_wait(epoll_fd_, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < num_events; ++i) {
      const int fd = events[static_cast<size_t>(i)].data.fd;
      if (fd == stop_fd_) return;
      if (open_fds_.erase(fd) > 0) {
        close(fd);
      } else {
        AcceptFrom(fd);
      }
    }
  }
}

void GrpcListener::AcceptFrom(int listening_fd) {
  while (true) {
    const int fd = accept4(listening_fd, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd >= 0) {
      HandOver(fd);
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      std::this_thread::sleep_for(kWaitForDescriptors);
      return;
    } else if (errno != ECONNABORTED && errno != EINTR) {
      return;
    }
  }
}

void GrpcListener::HandOver(int fd) {
  const bool has_room = static_cast<int64_t>(open_fds_.size()) < max_connections_;
  const int second_fd = has_room ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
  if (second_fd < 0) {
    close(fd);
    return TellOfRefusal();
  }
  before_each_();
  SetOption(fd, IPPROTO_TCP, TCP_NODELAY);
  open_fds_.insert(second_fd);
  Watch(second_fd, 0);  // hanging up is told without being asked for
  grpc::experimental::ExternalConnectionAcceptor::NewConnectionParameters parameters;
  parameters.fd = fd;
  acceptor_->HandleNewConnection(&parameters);
}

void GrpcListener::TellOfRefusal() {
  ++num_refused_;
  if (clock_.Now() < next_telling_) return;
  log::Warning("{} gRPC connections were closed at once: {} are open, and --grpc-max-connections is {}", num_refused_,
               open_fds_.size(), max_connections_);
  num_refused_ = 0;
  next_telling_ = clock_.Now() + kTellingInterval;
}

}  // namespace quire
