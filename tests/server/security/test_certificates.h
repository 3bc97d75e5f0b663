#pragma once

#include <string>

#include "server/security/tls.h"
#include "tests/support/temp_dir.h"

namespace quire::testing {

// PEM texts.
struct Identity {
  std::string certificate;
  std::string key;
};

// A certificate authority of a test's own. Throws where OpenSSL fails.
class TestAuthority {
 public:
  explicit TestAuthority(const std::string& name);

  const std::string& certificate() const { return own_.certificate; }
  // For localhost and 127.0.0.1, valid for an hour; or, expired, until an hour ago.
  Identity Issue(const std::string& name, bool is_expired = false) const;

 private:
  Identity own_;
};

// Files of a server with an identity of its own authority's.
struct ServerIdentityFiles {
  explicit ServerIdentityFiles(const TestAuthority& authority);
  // Another certificate from now on.
  void Replace(const Identity& identity) const;
  TlsFiles files() const { return {.certificate = certificate, .key = key, .client_ca = {}}; }
  TlsFiles files_with_clients_of(const TestAuthority& authority) const;

  TempDir folder;
  std::string certificate = folder.File("server.pem");
  std::string key = folder.File("server.key");
};

}  // namespace quire::testing
