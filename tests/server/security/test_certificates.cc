#include "tests/server/security/test_certificates.h"

#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509v3.h>

#include <cstdint>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>

namespace quire::testing {
namespace {

constexpr long kHour = 3600;

struct Free {
  void operator()(EVP_PKEY* key) const { EVP_PKEY_free(key); }
  void operator()(X509* certificate) const { X509_free(certificate); }
  void operator()(BIO* bio) const { BIO_free(bio); }
  void operator()(X509_EXTENSION* extension) const { X509_EXTENSION_free(extension); }
};
template <typename T>
using Owned = std::unique_ptr<T, Free>;

void Require(bool is_done) {
  if (!is_done) throw std::runtime_error("OpenSSL can't make a certificate");
}

template <typename Write>
std::string Pem(const Write& write) {
  const Owned<BIO> bio(BIO_new(BIO_s_mem()));
  Require(write(bio.get()) == 1);
  char* bytes = nullptr;
  const long size = BIO_get_mem_data(bio.get(), &bytes);
  return std::string(bytes, static_cast<size_t>(size));
}

Owned<BIO> BioOf(const std::string& pem) {
  return Owned<BIO>(BIO_new_mem_buf(pem.data(), static_cast<int>(pem.size())));
}

void AddExtension(X509* certificate, int nid, const char* value) {
  const Owned<X509_EXTENSION> extension(X509V3_EXT_conf_nid(nullptr, nullptr, nid, value));
  Require(extension != nullptr && X509_add_ext(certificate, extension.get(), -1) == 1);
}

// `issuer` null: of itself.
Identity MakeIdentity(const std::string& name, const Identity* issuer, long valid_until_seconds) {
  const Owned<EVP_PKEY> key(EVP_EC_gen("P-256"));
  const Owned<X509> certificate(X509_new());
  Require(key != nullptr && certificate != nullptr);
  X509_set_version(certificate.get(), X509_VERSION_3);
  ASN1_INTEGER_set_uint64(X509_get_serialNumber(certificate.get()), std::random_device()());
  X509_gmtime_adj(X509_getm_notBefore(certificate.get()), -2 * kHour);
  X509_gmtime_adj(X509_getm_notAfter(certificate.get()), valid_until_seconds);
  X509_set_pubkey(certificate.get(), key.get());
  X509_NAME* const subject = X509_get_subject_name(certificate.get());
  X509_NAME_add_entry_by_txt(subject, "CN", MBSTRING_UTF8, reinterpret_cast<const unsigned char*>(name.c_str()), -1, -1,
                             0);
  AddExtension(certificate.get(), NID_basic_constraints, issuer == nullptr ? "critical,CA:TRUE" : "CA:FALSE");
  if (issuer == nullptr) {
    X509_set_issuer_name(certificate.get(), subject);
    Require(X509_sign(certificate.get(), key.get(), EVP_sha256()) > 0);
  } else {
    AddExtension(certificate.get(), NID_subject_alt_name, "DNS:localhost,IP:127.0.0.1");
    const Owned<X509> issuer_certificate(
        PEM_read_bio_X509(BioOf(issuer->certificate).get(), nullptr, nullptr, nullptr));
    const Owned<EVP_PKEY> issuer_key(PEM_read_bio_PrivateKey(BioOf(issuer->key).get(), nullptr, nullptr, nullptr));
    Require(issuer_certificate != nullptr && issuer_key != nullptr);
    X509_set_issuer_name(certificate.get(), X509_get_subject_name(issuer_certificate.get()));
    Require(X509_sign(certificate.get(), issuer_key.get(), EVP_sha256()) > 0);
  }
  return {.certificate = Pem([&](BIO* bio) { return PEM_write_bio_X509(bio, certificate.get()); }),
          .key = Pem([&](BIO* bio) {
            return PEM_write_bio_PrivateKey(bio, key.get(), nullptr, nullptr, 0, nullptr, nullptr);
          })};
}

}  // namespace

TestAuthority::TestAuthority(const std::string& name) : own_(MakeIdentity(name, nullptr, kHour)) {}

Identity TestAuthority::Issue(const std::string& name, bool is_expired) const {
  return MakeIdentity(name, &own_, is_expired ? -kHour : kHour);
}

ServerIdentityFiles::ServerIdentityFiles(const TestAuthority& authority) { Replace(authority.Issue("server")); }

void ServerIdentityFiles::Replace(const Identity& identity) const {
  std::ofstream(certificate) << identity.certificate;
  std::ofstream(key) << identity.key;
}

TlsFiles ServerIdentityFiles::files_with_clients_of(const TestAuthority& authority) const {
  TlsFiles result = files();
  result.client_ca = folder.File("clients.pem");
  std::ofstream(result.client_ca) << authority.certificate();
  return result;
}

}  // namespace quire::testing
