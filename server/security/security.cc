#include "server/security/security.h"

#include <string>
#include <utility>
#include <vector>

#include "engine/base/status.h"

namespace quire {

absl::StatusOr<Security> LoadSecurity(const std::string& api_keys, bool tenants_are_set, const TlsFiles& tls,
                                      const Clock* clock) {
  Security security;
  security.authenticator = MakeKeylessAuthenticator();
  if (!api_keys.empty()) {
    QUIRE_ASSIGN_OR_RETURN(security.key_file, OpenKeyFile(api_keys, tenants_are_set, clock));
    security.authenticator = MakeKeyAuthenticator(security.key_file.get());
  }
  if (!tls.enabled()) return security;
  QUIRE_ASSIGN_OR_RETURN(security.tls_loader, TlsLoader::Create(tls));
  std::vector<std::string> paths = {tls.certificate, tls.key};
  if (security.tls_loader->has_client_ca()) paths.push_back(tls.client_ca);
  auto load = [loader = security.tls_loader.get()] { return loader->Load(); };
  QUIRE_ASSIGN_OR_RETURN(security.tls, ReloadableFile<TlsContext>::Create(paths, std::move(load), clock));
  return security;
}

}  // namespace quire
