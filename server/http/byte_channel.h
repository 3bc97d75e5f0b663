#pragma once

#include <httplib.h>
#include <sys/types.h>

#include <memory>

#include "server/security/tls.h"

namespace quire {

// What a read or write of a channel did.
struct ChannelResult {
  enum class Outcome { kDone, kMustWait, kClosed };

  Outcome outcome = Outcome::kClosed;
  ssize_t size = 0;       // kDone: bytes, at least one
  short wait_events = 0;  // kMustWait: what the socket must be ready for, of poll(2), before it is tried again
};

// The bytes of an accepted connection, plain or within TLS. No method waits. The socket is not the channel's.
class ByteChannel {
 public:
  virtual ~ByteChannel() = default;

  virtual ChannelResult Read(char* bytes, size_t size) = 0;
  virtual ChannelResult Write(const char* bytes, size_t size) = 0;
  // False once the other side has closed.
  virtual bool IsOpen() = 0;
};

std::unique_ptr<ByteChannel> MakePlainChannel(socket_t socket);
// TLS in the server's part; its handshake is part of the first read or write.
std::unique_ptr<ByteChannel> MakeTlsChannel(socket_t socket, const TlsContext& context);

}  // namespace quire
