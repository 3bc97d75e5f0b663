#pragma once

#include <string>

namespace quire {

// An IP address of this machine alone: 127.0.0.0/8, ::1, or the former as IPv6. A name is none.
bool IsLoopbackIp(const std::string& ip);

// An IP address, or "localhost": no name that somebody else's DNS could answer for.
bool IsIpOrLocalhost(const std::string& host);

// The host of HOST:PORT or HOST, without the brackets of an IPv6 address.
std::string HostOf(const std::string& address);

}  // namespace quire
