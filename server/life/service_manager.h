#pragma once

#include <string_view>

namespace quire {

// Tells the service manager that started the process, if it asked to be told, how the server stands: "READY=1",
// "STOPPING=1". It asks by the socket that NOTIFY_SOCKET names, as systemd does for Type=notify:
// https://www.freedesktop.org/software/systemd/man/latest/sd_notify.html.
void NotifyServiceManager(std::string_view state);

}  // namespace quire
