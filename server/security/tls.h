#pragma once

#include <grpcpp/security/server_credentials.h>
#include <openssl/ssl.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "server/security/memory_file.h"

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

// Copies of such files, in memory, each as it was last found good. gRPC watches these and not the files themselves,
// since it would take whatever it finds there.
class TlsFileCopies {
 public:
  void Write(const TlsFiles& contents) const;
  // Their paths; of client_ca only if there is one.
  TlsFiles paths(bool with_client_ca) const;

 private:
  const MemoryFile certificate_;
  const MemoryFile key_;
  const MemoryFile client_ca_;
};

// What TLS sessions are made with, TLS 1.2 or newer: the files' content. Thread-safe.
class TlsContext {
 public:
  // INVALID_ARGUMENT names the file that can't be used. Files that can be are copied to `copies`, if it is not null.
  static absl::StatusOr<std::shared_ptr<const TlsContext>> Load(const TlsFiles& files,
                                                                const TlsFileCopies* copies = nullptr);

  // A session in the server's part, or null without memory.
  std::unique_ptr<SSL, SslDeleter> NewSession() const;

 private:
  explicit TlsContext(std::unique_ptr<SSL_CTX, SslDeleter> context) : context_(std::move(context)) {}

  const std::unique_ptr<SSL_CTX, SslDeleter> context_;
};

// The same for gRPC, which looks at the files itself, once a second. Without any, there is no TLS.
std::shared_ptr<grpc::ServerCredentials> MakeGrpcCredentials(const TlsFiles& files);

}  // namespace quire
