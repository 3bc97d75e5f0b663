#include "server/http/byte_channel.h"

#include <fcntl.h>
#include <openssl/err.h>
#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <utility>

namespace quire {
namespace {

using Outcome = ChannelResult::Outcome;

bool IsTemporary(int error) { return error == EAGAIN || error == EWOULDBLOCK || error == EINTR; }

ChannelResult ResultOf(ssize_t size, short wait_events) {
  if (size > 0) return {.outcome = Outcome::kDone, .size = size, .wait_events = 0};
  if (size < 0 && IsTemporary(errno)) return {.outcome = Outcome::kMustWait, .size = 0, .wait_events = wait_events};
  return {};
}

class PlainChannel : public ByteChannel {
 public:
  explicit PlainChannel(socket_t socket) : socket_(socket) {}

  ChannelResult Read(char* bytes, size_t size) override {
    return ResultOf(recv(socket_, bytes, size, MSG_DONTWAIT), POLLIN);
  }
  ChannelResult Write(const char* bytes, size_t size) override {
    return ResultOf(send(socket_, bytes, size, MSG_NOSIGNAL | MSG_DONTWAIT), POLLOUT);
  }
  bool IsOpen() override {
    char byte = 0;
    const ssize_t size = recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return size > 0 || (size < 0 && IsTemporary(errno));
  }

 private:
  const socket_t socket_;
};

// A BIO writes with write(2), whose SIGPIPE the process ignores.
class TlsChannel : public ByteChannel {
 public:
  TlsChannel(socket_t socket, const TlsContext& context) : session_(context.NewSession()) {
    fcntl(socket, F_SETFL, fcntl(socket, F_GETFL, 0) | O_NONBLOCK);
    if (session_ != nullptr && SSL_set_fd(session_.get(), socket) != 1) session_.reset();
  }
  // Tells the other side that nothing was cut off. A session that has failed may not be used any more.
  ~TlsChannel() override {
    if (session_ != nullptr && !has_failed_) SSL_shutdown(session_.get());
    ERR_clear_error();
  }

  ChannelResult Read(char* bytes, size_t size) override {
    if (session_ == nullptr || has_failed_) return {};
    ERR_clear_error();
    return ResultOf(SSL_read(session_.get(), bytes, static_cast<int>(size)));
  }
  ChannelResult Write(const char* bytes, size_t size) override {
    if (session_ == nullptr || has_failed_) return {};
    ERR_clear_error();
    return ResultOf(SSL_write(session_.get(), bytes, static_cast<int>(size)));
  }
  bool IsOpen() override {
    if (session_ == nullptr || has_failed_) return false;
    char byte = 0;
    ERR_clear_error();
    return ResultOf(SSL_peek(session_.get(), &byte, 1)).outcome != Outcome::kClosed;
  }

 private:
  ChannelResult ResultOf(int size) {
    if (size > 0) return {.outcome = Outcome::kDone, .size = size, .wait_events = 0};
    switch (SSL_get_error(session_.get(), size)) {
      case SSL_ERROR_WANT_READ: return {.outcome = Outcome::kMustWait, .size = 0, .wait_events = POLLIN};
      case SSL_ERROR_WANT_WRITE: return {.outcome = Outcome::kMustWait, .size = 0, .wait_events = POLLOUT};
      case SSL_ERROR_ZERO_RETURN: return {};  // closed as it should be
      default: has_failed_ = true; return {};
    }
  }

  std::unique_ptr<SSL, SslDeleter> session_;
  bool has_failed_ = false;
};

}  // namespace

std::unique_ptr<ByteChannel> MakePlainChannel(socket_t socket) { return std::make_unique<PlainChannel>(socket); }

std::unique_ptr<ByteChannel> MakeTlsChannel(socket_t socket, const TlsContext& context) {
  return std::make_unique<TlsChannel>(socket, context);
}

}  // namespace quire
