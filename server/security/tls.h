#pragma once

#include <grpcpp/security/server_credentials.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"

namespace quire {

// PEM files of a server.
struct TlsFiles {
  std::string certificate;  // its own, and those between it and a root
  std::string key;          // of the certificate
  std::string client_ca;    // whose clients are let in, and no others; empty: clients need no certificate

  bool enabled() const { return !certificate.empty() || !key.empty() || !client_ca.empty(); }
};

// INVALID_ARGUMENT, by the settings' names, unless certificate and key are both there or nothing is.
absl::Status CheckTlsFiles(const TlsFiles& files);

struct SslDeleter {
  void operator()(SSL* session) const { SSL_free(session); }
  void operator()(SSL_CTX* context) const { SSL_CTX_free(context); }
};

// What TLS sessions are made with, TLS 1.2 or newer: the files' content. Thread-safe.
class TlsContext {
 public:
  // Reads `files`. INVALID_ARGUMENT names the one that can't be used, by its path in `named`.
  static absl::StatusOr<std::shared_ptr<const TlsContext>> Create(const TlsFiles& files, const TlsFiles& named);

  // Whether the server's own certificate is of no use any more: clients will refuse it.
  bool has_expired() const;

  // A session in the server's part, or null without memory.
  std::unique_ptr<SSL, SslDeleter> NewSession() const;

 private:
  explicit TlsContext(std::unique_ptr<SSL_CTX, SslDeleter> context) : context_(std::move(context)) {}

  const std::unique_ptr<SSL_CTX, SslDeleter> context_;
};

// The same for gRPC, which looks at the files itself, once a second. Without any, there is no TLS.
std::shared_ptr<grpc::ServerCredentials> MakeGrpcCredentials(const TlsFiles& files);

}  // namespace quire
