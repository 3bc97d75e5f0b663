#pragma once

#include <httplib.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>

#include "engine/base/clock.h"
#include "server/http/http_connection.h"
#include "server/security/reloadable_file.h"
#include "server/security/tls.h"

namespace quire {

struct HttpLimits {
  int64_t max_connections = 64;                         // each costs a thread; more get 503
  int64_t max_body_bytes = int64_t{4} << 20;            // of a request
  Duration request_timeout = std::chrono::seconds(15);  // for all of a request to come in
  Duration idle_timeout = std::chrono::seconds(60);     // between a connection's requests
  Duration write_timeout = std::chrono::seconds(30);    // for a reader to take what was written
};

// httplib's server with connections of our own: bounded in number, and in time at every read and write, so that clients
// who send or read slowly hold up a connection for a while and nothing else. Handlers are added to it as to httplib's.
class HttpListener : public httplib::Server {
 public:
  // Connections are TLS with what `tls` has when they come, or plain if it is null. It must outlive the listener.
  HttpListener(const HttpLimits& limits, ReloadableFile<TlsContext>* tls);

  // Takes no further request; waits up to `timeout` for those that are being answered. listen_after_bind returns.
  void Stop(Duration timeout);

 private:
  class OpenConnection;

  bool process_and_close_socket(socket_t socket) override;
  void ServeRequests(HttpConnection& connection, OpenConnection& open);

  std::unique_ptr<ByteChannel> MakeChannel(socket_t socket);

  const HttpLimits limits_;
  ReloadableFile<TlsContext>* const tls_;  // may be null
  const SteadyClock clock_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable changed_;
  std::map<socket_t, bool> is_busy_;  // of each open connection: a request is being read or answered
  bool stopping_ = false;
};

}  // namespace quire
