#pragma once

#include <httplib.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>

#include "engine/base/clock.h"
#include "server/http/byte_channel.h"

namespace quire {

// The bytes of one accepted HTTP connection. Whatever the other side does, no read or write waits past its time.
class HttpConnection : public httplib::Stream {
 public:
  // Owns `socket` and closes it; `channel` is its. A write waits for its reader at most `write_timeout`.
  HttpConnection(socket_t socket, std::unique_ptr<ByteChannel> channel, Duration write_timeout);
  ~HttpConnection() override;
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Waits for the first byte of a request; false if none came in time, or the other side has closed.
  bool WaitForRequest(Duration timeout);
  // Everything of a request that has begun must be there by then, however slowly it trickles in.
  void SetReadDeadline(TimePoint deadline) { read_deadline_ = deadline; }

  // Writes `response` to a client whose request is not wanted, and closes so that it can read it.
  void Refuse(const std::string& response);
  // Says that no more responses come, and waits a little for the client to read those that did.
  void EndResponses();

  bool is_readable() const override;
  // False once the other side has closed.
  bool is_writable() const override;
  ssize_t read(char* bytes, size_t size) override;
  ssize_t write(const char* bytes, size_t size) override;
  void get_remote_ip_and_port(std::string& ip, int& port) const override;
  void get_local_ip_and_port(std::string& ip, int& port) const override;
  socket_t socket() const override { return socket_; }

 private:
  // Fills the buffer; false at the end of the stream, on an error, or if nothing comes before `deadline`.
  bool Fill(TimePoint deadline);
  // True once the socket is ready for `events`, of poll(2).
  bool WaitFor(short events, TimePoint deadline) const;

  const socket_t socket_;
  const std::unique_ptr<ByteChannel> channel_;
  Duration write_timeout_;
  const SteadyClock clock_;
  TimePoint read_deadline_;
  std::array<char, 4096> buffer_;  // bytes [begin_, end_) are read from the socket and not yet by read()
  size_t begin_ = 0;
  size_t end_ = 0;
};

}  // namespace quire
