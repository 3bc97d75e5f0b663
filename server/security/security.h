#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "engine/base/clock.h"
#include "server/security/authenticator.h"
#include "server/security/key_file.h"
#include "server/security/reloadable_file.h"
#include "server/security/tls.h"
#include "server/security/tls_loader.h"

namespace quire {

// Who may call, and how connections are protected.
struct Security {
  std::unique_ptr<ReloadableFile<KeyFile>> key_file;  // null: callers need no key
  std::unique_ptr<Authenticator> authenticator;       // after the file of keys, which it reads
  std::unique_ptr<TlsLoader> tls_loader;              // null: no TLS
  std::unique_ptr<ReloadableFile<TlsContext>> tls;    // the same; after the loader, which it calls

  // What gRPC may read.
  TlsFiles grpc_tls_files() const { return tls_loader ? tls_loader->good_files() : TlsFiles{}; }
};

// Of the file of keys, as OpenKeyFile takes it, if there is one, and TLS's. `clock` must outlive it. INVALID_ARGUMENT
// names a file that can't be used.
absl::StatusOr<Security> LoadSecurity(const std::string& api_keys, bool tenants_are_set, const TlsFiles& tls,
                                      const Clock* clock);

}  // namespace quire
