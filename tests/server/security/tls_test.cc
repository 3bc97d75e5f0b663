// Both listeners over TLS: who gets in, and what happens to the files.
#include "server/security/tls_loader.h"

#include <httplib.h>
#include <sys/resource.h>

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/status.h"
#include "tests/server/connected_channel.h"
#include "tests/server/http/http_client.h"
#include "tests/server/security/test_certificates.h"
#include "tests/server/test_server.h"
#include "tests/support/fake_clock.h"

namespace quire::testing {
namespace {

std::shared_ptr<grpc::ChannelCredentials> CredentialsOf(const TestAuthority& trusted, const Identity& own = {}) {
  return grpc::SslCredentials(
      {.pem_root_certs = trusted.certificate(), .pem_private_key = own.key, .pem_cert_chain = own.certificate});
}

TestServerOptions Secure(const TlsFiles& files, std::shared_ptr<grpc::ChannelCredentials> credentials) {
  TestServerOptions options = WithHttp();
  options.tls = files;
  options.credentials = std::move(credentials);
  return options;
}

// The code that GET /health is answered with over TLS, or 0 without an answer. `own` empty: no client certificate.
int HttpsCode(const TestServer& server, const TestAuthority& trusted, const Identity& own = {}) {
  const TempDir folder;
  const auto write = [&folder](const char* name, const std::string& pem) {
    std::ofstream(folder.File(name)) << pem;
    return folder.File(name);
  };
  const std::string certificate = own.certificate.empty() ? "" : write("client.pem", own.certificate);
  const std::string key = own.key.empty() ? "" : write("client.key", own.key);
  httplib::Client client("https://" + server.http_address(), certificate, key);
  client.set_ca_cert_path(write("ca.pem", trusted.certificate()));
  const httplib::Result result = client.Get("/health");
  return result ? result->status : 0;
}

absl::Status LoadOnce(const TlsFiles& files) { return TlsLoader::Create(files).value()->Load().status(); }

// While it lives the process can open nothing more.
class NoFreeDescriptors {
 public:
  NoFreeDescriptors() {
    getrlimit(RLIMIT_NOFILE, &before_);
    const rlimit none = {.rlim_cur = 0, .rlim_max = before_.rlim_max};
    setrlimit(RLIMIT_NOFILE, &none);
  }
  ~NoFreeDescriptors() { setrlimit(RLIMIT_NOFILE, &before_); }
  NoFreeDescriptors(const NoFreeDescriptors&) = delete;
  NoFreeDescriptors& operator=(const NoFreeDescriptors&) = delete;

 private:
  rlimit before_ = {};
};

bool CanConnect(const TestServer& server, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  const auto channel = grpc::CreateCustomChannel(server.address(), credentials, arguments);
  // One attempt: a handshake that was refused leaves the channel in this state.
  grpc_connectivity_state state = channel->GetState(/*try_to_connect=*/true);
  while (state != GRPC_CHANNEL_READY && state != GRPC_CHANNEL_TRANSIENT_FAILURE) {
    channel->WaitForStateChange(state, std::chrono::system_clock::now() + std::chrono::seconds(10));
    state = channel->GetState(true);
  }
  return state == GRPC_CHANNEL_READY;
}

TEST_CASE("both listeners serve over TLS, to clients who trust the certificate") {
  const TestAuthority authority("authority");
  const TestAuthority stranger("stranger");
  const ServerIdentityFiles identity(authority);
  TestServer server(Secure(identity.files(), CredentialsOf(authority)));
  grpc::ClientContext context;
  v1::GenerateResponse response;
  CHECK(server.generation().Generate(&context, TextRequest("abc"), &response).ok());
  CHECK(response.outputs(0).text() == "hello");
  CHECK(HttpsCode(server, authority) == 200);
  CHECK(HttpsCode(server, stranger) == 0);
  CHECK_FALSE(CanConnect(server, grpc::InsecureChannelCredentials()));
}

TEST_CASE("a stream over TLS ends when its client closes, and takes none with it") {
  const TestAuthority authority("authority");
  const ServerIdentityFiles identity(authority);
  TestServerOptions options = EndlessAnswers();
  options.http_listen = "127.0.0.1:0";
  options.tls = identity.files();
  options.credentials = CredentialsOf(authority);
  TestServer server(options);
  const TempDir folder;
  std::ofstream(folder.File("ca.pem")) << authority.certificate();
  {
    httplib::Client client("https://" + server.http_address());
    client.set_ca_cert_path(folder.File("ca.pem"));
    httplib::Request request;
    request.method = "POST";
    request.path = "/v1/completions";
    request.body = R"({"prompt": "abc", "stream": true, "max_tokens": 1000000})";
    int num_pieces = 0;
    request.content_receiver = [&](const char*, size_t, uint64_t, uint64_t) { return ++num_pieces < 3; };
    CHECK_FALSE(client.send(request));
    CHECK(num_pieces == 3);
  }
  CHECK(server.PollUntilIdle());
}

TEST_CASE("with a client authority, clients without its certificate are not let in") {
  const TestAuthority authority("authority");
  const TestAuthority clients("clients");
  const ServerIdentityFiles identity(authority);
  const Identity client = clients.Issue("client");
  const Identity expired = clients.Issue("client", /*is_expired=*/true);
  const Identity other = authority.Issue("client");
  const TestServer server(Secure(identity.files_with_clients_of(clients), CredentialsOf(authority, client)));
  CHECK(HttpsCode(server, authority, client) == 200);
  for (const Identity& bad : {Identity(), expired, other}) {
    CHECK(HttpsCode(server, authority, bad) == 0);
    CHECK_FALSE(CanConnect(server, CredentialsOf(authority, bad)));
  }
}

TEST_CASE("replaced files are in force for connections that come later") {
  const TestAuthority authority("authority");
  const TestAuthority successor("successor");
  const ServerIdentityFiles identity(authority);
  TestServer server(Secure(identity.files(), CredentialsOf(authority)));
  identity.Replace(successor.Issue("server"));
  server.server().Reload();
  CHECK(HttpsCode(server, successor) == 200);
  CHECK(HttpsCode(server, authority) == 0);
  // gRPC looks at the files by itself.
  bool is_replaced = false;
  for (int i = 0; i < 20000 && !is_replaced; ++i) {
    is_replaced = CanConnect(server, CredentialsOf(successor));
  }
  CHECK(is_replaced);
}

TEST_CASE("files that can't be used leave both ports as they were") {
  const TestAuthority authority("authority");
  const TestAuthority clients("clients");
  const ServerIdentityFiles identity(authority);
  const Identity client = clients.Issue("client");
  const TlsFiles files = identity.files_with_clients_of(clients);
  TestServer server(Secure(files, CredentialsOf(authority, client)));
  const Identity other = authority.Issue("server");
  const auto both_serve = [&] {
    server.server().Reload();
    // Longer than gRPC takes to look at its files. Throws if there is no connection for ten seconds.
    for (int i = 0; i < 1500; ++i) ConnectedChannel(server.address(), CredentialsOf(authority, client));
    return HttpsCode(server, authority, client) == 200;
  };
  std::ofstream(identity.certificate) << "junk";
  CHECK(both_serve());
  identity.Replace({.certificate = other.certificate, .key = authority.Issue("server").key});
  CHECK(both_serve());
  identity.Replace(other);
  std::ofstream(files.client_ca) << "junk";
  CHECK(both_serve());
}

TEST_CASE("files that can't be opened for want of descriptors are refused, until there are some") {
  const TestAuthority authority("authority");
  const ServerIdentityFiles identity(authority);
  const auto loader = TlsLoader::Create(identity.files()).value();
  CHECK(loader->Load().ok());
  absl::Status loaded;
  absl::Status created;
  {
    // Checks wait for its end: sanitizers need descriptors for theirs.
    const NoFreeDescriptors none;
    loaded = loader->Load().status();
    created = TlsLoader::Create(identity.files()).status();
  }
  CHECK_FALSE(loaded.ok());
  CHECK(created.code() == absl::StatusCode::kResourceExhausted);
  CHECK(loader->Load().ok());
}

TEST_CASE("an expired certificate of the server is told from one that is valid") {
  const TestAuthority authority("authority");
  const ServerIdentityFiles identity(authority);
  const auto loader = TlsLoader::Create(identity.files()).value();
  CHECK_FALSE(loader->Load().value()->has_expired());
  identity.Replace(authority.Issue("server", /*is_expired=*/true));
  CHECK(loader->Load().value()->has_expired());
}

TEST_CASE("files that can't be used are named") {
  const TestAuthority authority("authority");
  const ServerIdentityFiles identity(authority);
  const ServerIdentityFiles other(authority);
  const auto field = [](const TlsFiles& files) {
    const absl::Status status = LoadOnce(files);
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    return FieldOf(status);
  };
  TlsFiles files = identity.files();
  files.certificate = "/no/such/file";
  CHECK(field(files) == "tls_certificate");
  files = identity.files();
  files.key = other.key;  // of another certificate
  CHECK(field(files) == "tls_key");
  files = identity.files();
  files.client_ca = identity.key;  // no certificate
  CHECK(field(files) == "tls_client_ca");
  CHECK(FieldOf(CheckTlsFiles({.certificate = "c", .key = {}, .client_ca = {}})) == "tls_key");
  CHECK(FieldOf(CheckTlsFiles({.certificate = {}, .key = {}, .client_ca = "c"})) == "tls_certificate");
  CHECK(CheckTlsFiles({}).ok());
}

}  // namespace
}  // namespace quire::testing
