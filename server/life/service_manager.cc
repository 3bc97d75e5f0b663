#include "server/life/service_manager.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstddef>
#include <cstdlib>
#include <cstring>
#include <string>

#include "engine/base/log.h"

namespace quire {

void NotifyServiceManager(std::string_view state) {
  const char* const path = std::getenv("NOTIFY_SOCKET");
  if (path == nullptr) return;
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  const size_t size = std::strlen(path);
  if (size == 0 || size >= sizeof(address.sun_path)) {
    return log::Warning("NOTIFY_SOCKET: \"{}\" is no socket's name", path);
  }
  std::memcpy(address.sun_path, path, size);
  // An abstract name, which is no file's, begins with a zero byte.
  if (address.sun_path[0] == '@') address.sun_path[0] = '\0';
  const int socket_fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const auto address_size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + size);
  const ssize_t sent = sendto(socket_fd, state.data(), state.size(), MSG_NOSIGNAL,
                              reinterpret_cast<const sockaddr*>(&address), address_size);
  if (sent < 0) log::Warning("NOTIFY_SOCKET: {} could not be told: {}", path, std::strerror(errno));
  close(socket_fd);
}

}  // namespace quire
