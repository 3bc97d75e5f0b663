#include "server/security/loopback.h"

#include <arpa/inet.h>
#include <netinet/in.h>

namespace quire {

bool IsLoopbackIp(const std::string& ip) {
  in_addr v4 = {};
  if (inet_pton(AF_INET, ip.c_str(), &v4) == 1) return (ntohl(v4.s_addr) >> 24) == IN_LOOPBACKNET;
  in6_addr v6 = {};
  if (inet_pton(AF_INET6, ip.c_str(), &v6) != 1) return false;
  return IN6_IS_ADDR_LOOPBACK(&v6) || (IN6_IS_ADDR_V4MAPPED(&v6) && v6.s6_addr[12] == IN_LOOPBACKNET);
}

bool IsIpOrLocalhost(const std::string& host) {
  in6_addr ignored = {};
  return host == "localhost" || inet_pton(AF_INET, host.c_str(), &ignored) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &ignored) == 1;
}

std::string HostOf(const std::string& address) {
  if (address.starts_with('[')) return address.substr(1, address.find(']') - 1);
  return address.substr(0, address.rfind(':'));
}

}  // namespace quire
