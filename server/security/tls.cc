#include "server/security/tls.h"

#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <openssl/err.h>

#include <array>

#include "engine/base/status.h"

namespace quire {
namespace {

constexpr unsigned kRefreshSeconds = 1;

absl::Status CantUse(const char* setting, const std::string& path, const char* accepted) {
  std::array<char, 256> reason = {};
  ERR_error_string_n(ERR_get_error(), reason.data(), reason.size());
  ERR_clear_error();
  return InvalidArgument(setting, StrCat("\"", path, "\" (", reason.data(), ")"), accepted);
}

// False if the file has no certificates.
bool RequireClientsOf(const std::string& client_ca, SSL_CTX* context) {
  STACK_OF(X509_NAME)* const names = SSL_load_client_CA_file(client_ca.c_str());
  SSL_CTX_set_client_CA_list(context, names);
  if (names == nullptr || SSL_CTX_load_verify_locations(context, client_ca.c_str(), nullptr) != 1) return false;
  SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  // Sessions that are taken up again keep their client's certificate only under a name.
  constexpr unsigned char kSessionName[] = "quire";
  SSL_CTX_set_session_id_context(context, kSessionName, sizeof(kSessionName) - 1);
  return true;
}

}  // namespace

absl::Status CheckTlsFiles(const TlsFiles& files) {
  if (!files.enabled()) return absl::OkStatus();
  if (files.certificate.empty()) return InvalidArgument("tls_certificate", "nothing", "a file: TLS needs it");
  if (files.key.empty()) return InvalidArgument("tls_key", "nothing", "a file: TLS needs it");
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<const TlsContext>> TlsContext::Create(const TlsFiles& files, const TlsFiles& named) {
  std::unique_ptr<SSL_CTX, SslDeleter> context(SSL_CTX_new(TLS_server_method()));
  if (context == nullptr) return absl::InternalError("OpenSSL has no memory for a TLS context");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  if (SSL_CTX_use_certificate_chain_file(context.get(), files.certificate.c_str()) != 1) {
    return CantUse("tls_certificate", named.certificate, "a file with a certificate in PEM");
  }
  if (SSL_CTX_use_PrivateKey_file(context.get(), files.key.c_str(), SSL_FILETYPE_PEM) != 1) {
    return CantUse("tls_key", named.key, "a file with the certificate's private key in PEM");
  }
  if (!files.client_ca.empty() && !RequireClientsOf(files.client_ca, context.get())) {
    return CantUse("tls_client_ca", named.client_ca, "a file with certificates in PEM");
  }
  return std::shared_ptr<const TlsContext>(new TlsContext(std::move(context)));
}

bool TlsContext::has_expired() const {
  return X509_cmp_current_time(X509_get0_notAfter(SSL_CTX_get0_certificate(context_.get()))) < 0;
}

std::unique_ptr<SSL, SslDeleter> TlsContext::NewSession() const {
  std::unique_ptr<SSL, SslDeleter> session(SSL_new(context_.get()));
  if (session != nullptr) SSL_set_accept_state(session.get());
  return session;
}

std::shared_ptr<grpc::ServerCredentials> MakeGrpcCredentials(const TlsFiles& files) {
  if (!files.enabled()) return grpc::InsecureServerCredentials();
  namespace tls = grpc::experimental;
  tls::TlsServerCredentialsOptions options(std::make_shared<tls::FileWatcherCertificateProvider>(
      files.key, files.certificate, files.client_ca, kRefreshSeconds));
  options.watch_identity_key_cert_pairs();
  if (files.client_ca.empty()) {
    options.set_cert_request_type(GRPC_SSL_DONT_REQUEST_CLIENT_CERTIFICATE);
  } else {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return tls::TlsServerCredentials(options);
}

}  // namespace quire
