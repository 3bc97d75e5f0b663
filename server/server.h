#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/clock.h"
#include "server/config/server_config.h"
#include "server/security/security.h"
#include "server/served_model.h"

namespace quire {

// A model served: gRPC's services, health and reflection on one port, and HTTP on another if it is configured.
class Server {
 public:
  // Serves from here on. `clock` must outlive the server. INVALID_ARGUMENT if an address can't be bound.
  static absl::StatusOr<std::unique_ptr<Server>> Start(const ServerConfig& config, Security security, ServedModel model,
                                                       const Clock* clock);
  virtual ~Server() = default;

  // HOST:PORT, with the port that was bound.
  virtual const std::string& address() const = 0;
  // The same of HTTP; empty if there is none.
  virtual std::string http_address() const = 0;

  // Reads the files of keys and certificates now; when they change it does so by itself, within two seconds.
  virtual void Reload() = 0;

  // Health says NOT_SERVING and new requests are refused; running ones get until `drain` has passed, then they end
  // with UNAVAILABLE. Returns when the port is closed and no call is left.
  virtual void Shutdown(Duration drain) = 0;
};

}  // namespace quire
