#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <span>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "server/config/server_config.h"

namespace quire {

// One setting of ServerConfig: the only place that knows its name, help, range and field.
struct ServerSetting {
  std::string name;        // as in a configuration file; the flag has '-' for '_'
  std::string value_name;  // as in --help: "N", "PATH"; empty for a switch
  std::string help;
  std::function<absl::Status(const nlohmann::json& value, ServerConfig* config)> set;
  std::function<nlohmann::json(const ServerConfig& config)> get;

  bool is_switch() const { return value_name.empty(); }
};

// In the order of --help.
std::span<const ServerSetting> ServerSettings();

// INVALID_ARGUMENT unless `address` is HOST:PORT, with an IPv6 host in brackets and the port in [0, 65535].
absl::Status CheckListenAddress(std::string_view field, const std::string& address);

}  // namespace quire
