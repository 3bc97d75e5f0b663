#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "engine/base/clock.h"
#include "server/security/authenticator.h"
#include "server/security/reloadable_file.h"
#include "server/security/tls.h"
#include "server/server_config.h"

namespace quire {

// Who may call, and how connections are protected.
struct Security {
  std::unique_ptr<Authenticator> authenticator;
  std::unique_ptr<TlsFileCopies> tls_copies;        // null: no TLS
  std::unique_ptr<ReloadableFile<TlsContext>> tls;  // the same; after the copies, which it writes
  bool has_client_ca = false;

  // What gRPC may read: the copies.
  TlsFiles grpc_tls_files() const { return tls_copies ? tls_copies->paths(has_client_ca) : TlsFiles{}; }
};

// What `config` asks for. `clock` must outlive it. INVALID_ARGUMENT names a file that can't be used.
absl::StatusOr<Security> LoadSecurity(const ServerConfig& config, const Clock* clock);

}  // namespace quire
