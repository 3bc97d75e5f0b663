#include "server/security/security.h"

#include <string>
#include <vector>

#include "engine/base/status.h"

namespace quire {

absl::StatusOr<Security> LoadSecurity(const ServerConfig& config, const Clock* clock) {
  Security security;
  security.authenticator = MakeKeylessAuthenticator();
  if (!config.api_keys.empty()) {
    QUIRE_ASSIGN_OR_RETURN(security.authenticator, MakeKeyAuthenticator(config.api_keys, clock));
  }
  if (!config.tls.enabled()) return security;
  security.has_client_ca = !config.tls.client_ca.empty();
  security.tls_copies = std::make_unique<TlsFileCopies>();
  std::vector<std::string> paths = {config.tls.certificate, config.tls.key};
  if (security.has_client_ca) paths.push_back(config.tls.client_ca);
  auto load = [files = config.tls, copies = security.tls_copies.get()] { return TlsContext::Load(files, copies); };
  QUIRE_ASSIGN_OR_RETURN(security.tls, ReloadableFile<TlsContext>::Create(paths, std::move(load), clock));
  return security;
}

}  // namespace quire
