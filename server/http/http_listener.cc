#include "server/http/http_listener.h"

#include <sys/socket.h>

#include <algorithm>
#include <chrono>
#include <string>

#include "absl/strings/match.h"
#include "server/http/connection_threads.h"
#include "server/http/http_error.h"

namespace quire {
namespace {

constexpr size_t kMaxWaitingRefusals = 64;  // connections past the limit that wait for their 503

// Whether everybody must find the same end of a request. A proxy that finds another would let one client's bytes pass
// as a request of the next one.
bool HasClearEnd(const httplib::Request& request) {
  const size_t num_lengths = request.get_header_value_count("Content-Length");
  const size_t num_encodings = request.get_header_value_count("Transfer-Encoding");
  if (num_lengths + num_encodings > 1) return false;
  return num_encodings == 0 || absl::EqualsIgnoreCase(request.get_header_value("Transfer-Encoding"), "chunked");
}

}  // namespace

// A connection's place among the open ones, if there is one.
class HttpListener::OpenConnection {
 public:
  OpenConnection(HttpListener* listener, socket_t socket) : listener_(listener), socket_(socket) {
    const std::lock_guard lock(listener_->mutex_);
    const auto max_connections = static_cast<size_t>(listener_->limits_.max_connections);
    has_place_ = listener_->is_busy_.size() < max_connections;
    if (has_place_) listener_->is_busy_[socket_] = false;
  }
  ~OpenConnection() {
    const std::lock_guard lock(listener_->mutex_);
    if (has_place_) listener_->is_busy_.erase(socket_);
    listener_->changed_.notify_all();
  }
  OpenConnection(const OpenConnection&) = delete;
  OpenConnection& operator=(const OpenConnection&) = delete;

  bool has_place() const { return has_place_; }

  // False once the listener stops: then no further request may begin.
  bool SetBusy(bool is_busy) {
    const std::lock_guard lock(listener_->mutex_);
    listener_->is_busy_[socket_] = is_busy && !listener_->stopping_;
    listener_->changed_.notify_all();
    return !listener_->stopping_;
  }

 private:
  HttpListener* const listener_;
  const socket_t socket_;
  bool has_place_;
};

HttpListener::HttpListener(const HttpLimits& limits, ReloadableFile<TlsContext>* tls) : limits_(limits), tls_(tls) {
  set_payload_max_length(static_cast<size_t>(limits.max_body_bytes));
  set_tcp_nodelay(true);
  // What responses promise in Keep-Alive; the connections keep it.
  set_keep_alive_timeout(std::chrono::ceil<std::chrono::seconds>(limits.idle_timeout).count());
  // One thread more than connections, which refuses the others.
  new_task_queue = [this] {
    return new ConnectionThreads(static_cast<size_t>(limits_.max_connections) + 1, kMaxWaitingRefusals);
  };
}

void HttpListener::Stop(Duration timeout) {
  {
    std::unique_lock lock(mutex_);
    stopping_ = true;
    for (const auto& [socket, is_busy] : is_busy_) {
      if (!is_busy) shutdown(socket, SHUT_RD);
    }
    changed_.wait_for(lock, timeout, [this] {
      return std::ranges::none_of(is_busy_, [](const auto& connection) { return connection.second; });
    });
    for (const auto& [socket, is_busy] : is_busy_) shutdown(socket, SHUT_RDWR);
  }
  stop();
}

// `connection` outlives its place, so that a place's socket is open.
bool HttpListener::process_and_close_socket(socket_t socket) {
  HttpConnection connection(socket, MakeChannel(socket), limits_.write_timeout);
  OpenConnection open(this, socket);
  if (open.has_place()) {
    ServeRequests(connection, open);
  } else {
    connection.Refuse(TooManyConnections(limits_.max_connections));
  }
  return true;
}

std::unique_ptr<ByteChannel> HttpListener::MakeChannel(socket_t socket) {
  return tls_ != nullptr ? MakeTlsChannel(socket, *tls_->Get()) : MakePlainChannel(socket);
}

void HttpListener::ServeRequests(HttpConnection& connection, OpenConnection& open) {
  std::string remote_ip, local_ip;
  int remote_port = 0, local_port = 0;
  connection.get_remote_ip_and_port(remote_ip, remote_port);
  connection.get_local_ip_and_port(local_ip, local_port);
  while (open.SetBusy(false) && connection.WaitForRequest(limits_.idle_timeout) && open.SetBusy(true)) {
    connection.SetReadDeadline(clock_.Now() + limits_.request_timeout);
    bool is_closed = false;
    bool is_end_clear = false;  // of what is not understood it never is
    const auto look_at_end = [&](const httplib::Request& request) { is_end_clear = HasClearEnd(request); };
    const bool is_served = process_request(connection, remote_ip, remote_port, local_ip, local_port,
                                           /*close_connection=*/false, is_closed, look_at_end);
    if (!is_served || is_closed) return;
    if (!is_end_clear) return connection.EndResponses();
  }
}

}  // namespace quire
