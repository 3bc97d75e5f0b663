#pragma once

#include <grpcpp/server_builder.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "absl/status/statusor.h"
#include "engine/base/clock.h"

namespace quire {

// The sockets that gRPC's connections come in by. gRPC itself takes as many as come, and each costs memory: here they
// are counted, and those beyond the limit are closed at once.
class GrpcListener {
 public:
  // Listens on every address that HOST of `address`, HOST:PORT, stands for; with port 0 on a free one. INVALID_ARGUMENT
  // for "grpc_listen" if none can be bound.
  static absl::StatusOr<std::unique_ptr<GrpcListener>> Bind(const std::string& address);
  // Takes no further connections; those that were taken go on.
  ~GrpcListener();
  GrpcListener(const GrpcListener&) = delete;
  GrpcListener& operator=(const GrpcListener&) = delete;

  // HOST:PORT, with the port that was bound.
  const std::string& address() const { return address_; }

  // From now on hands connections to `acceptor`, while fewer than `max_connections` are open. `before_each` is called
  // on the listener's thread before each of them.
  void Start(std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor, int64_t max_connections,
             std::function<void()> before_each);

 private:
  explicit GrpcListener(std::string address);

  void Watch(int fd, uint32_t events) const;
  // The thread: waits for connections that come and that are closed.
  void Run();
  void AcceptFrom(int listening_fd);
  void HandOver(int fd);
  // In the log, but not of each.
  void TellOfRefusal();

  std::string address_;
  const int epoll_fd_;
  const int stop_fd_;  // an eventfd
  std::vector<int> listening_fds_;
  std::unique_ptr<grpc::experimental::ExternalConnectionAcceptor> acceptor_;
  int64_t max_connections_ = 0;
  std::function<void()> before_each_;
  // Of each connection that gRPC has, a second descriptor. It hangs up when gRPC shuts the connection down, whoever
  // closed it: that is how its end is seen.
  std::unordered_set<int> open_fds_;
  const SteadyClock clock_;
  int64_t num_refused_ = 0;  // and not told of
  TimePoint next_telling_;
  std::thread thread_;
};

}  // namespace quire
