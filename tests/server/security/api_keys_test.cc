// A server with keys, asked over gRPC and HTTP.
#include "server/security/api_keys.h"

#include <catch2/catch_test_macros.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/server/http/http_client.h"
#include "tests/server/read_first_chunk.h"
#include "tests/server/stream_drain.h"
#include "tests/server/test_server.h"
#include "tests/support/temp_dir.h"

namespace quire::testing {
namespace {

// Two tenants' keys and an admin's, and a server that knows them.
struct Fixture {
  explicit Fixture(TestServerOptions options = {}) : server(WithKeys(std::move(options))) {}

  TestServerOptions WithKeys(TestServerOptions options) {
    options.api_keys = folder.File("keys.json");
    std::ofstream(options.api_keys) << "{\"keys\": [" << a.entry << "," << b.entry << "," << admin.entry << "]}";
    return WithHttp(std::move(options));
  }

  TempDir folder;
  NewApiKey a = *MakeApiKey("team-a", false);
  NewApiKey b = *MakeApiKey("team-b", false);
  NewApiKey admin = *MakeApiKey("ops", true);
  TestServer server;
};

void SetKey(const std::string& key, grpc::ClientContext* context) {
  if (!key.empty()) context->AddMetadata("authorization", "Bearer " + key);
}

template <typename Stub, typename Request, typename Response>
grpc::StatusCode CodeOf(Stub& stub, grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                        const std::string& key, const Request& request = {}) {
  grpc::ClientContext context;
  SetKey(key, &context);
  Response response;
  return (stub.*method)(&context, request, &response).error_code();
}

// Cache statistics with their requests, as the key's caller may see them.
v1::CacheStats StatsFor(Fixture& f, const std::string& key) {
  grpc::ClientContext context;
  SetKey(key, &context);
  v1::GetCacheStatsRequest request;
  request.set_include_requests(true);
  v1::CacheStats stats;
  REQUIRE(f.server.cache().GetCacheStats(&context, request, &stats).ok());
  return stats;
}

TEST_CASE("every call of the API needs a key, and admins' calls an admin's") {
  Fixture f;
  using G = v1::Generation::Stub;
  using C = v1::Cache::Stub;
  using A = v1::Admin::Stub;
  v1::DetokenizeRequest detokenize;
  v1::TokenizeRequest tokenize;
  tokenize.set_text("abc");
  const auto codes = [&](const std::string& key) {
    return std::vector<grpc::StatusCode>{
        CodeOf(f.server.generation(), &G::Generate, key, TextRequest("abc")),
        CodeOf(f.server.generation(), &G::Tokenize, key, tokenize),
        CodeOf(f.server.generation(), &G::Detokenize, key, detokenize),
        CodeOf(f.server.generation(), &G::ListModels, key),
        CodeOf(f.server.generation(), &G::GetModelInfo, key),
        CodeOf(f.server.cache(), &C::GetCacheStats, key),
        CodeOf(f.server.cache(), &C::GetCacheConfig, key),
    };
  };
  for (const std::string& key : {std::string(), std::string("quire_wrong")}) {
    for (const grpc::StatusCode code : codes(key)) CHECK(code == grpc::StatusCode::UNAUTHENTICATED);
    CHECK(CodeOf(f.server.admin(), &A::ClearPrefixCache, key) == grpc::StatusCode::UNAUTHENTICATED);
    CHECK(CodeOf(f.server.admin(), &A::Drain, key) == grpc::StatusCode::UNAUTHENTICATED);
  }
  for (const grpc::StatusCode code : codes(f.a.key)) CHECK(code == grpc::StatusCode::OK);
  CHECK(CodeOf(f.server.admin(), &A::ClearPrefixCache, f.a.key) == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(CodeOf(f.server.admin(), &A::Drain, f.a.key) == grpc::StatusCode::PERMISSION_DENIED);
  CHECK(CodeOf(f.server.admin(), &A::ClearPrefixCache, f.admin.key) == grpc::StatusCode::OK);
  // Those who only watch need none.
  CHECK(HealthOf(f.server.channel(), "") == grpc::health::v1::HealthCheckResponse::SERVING);
  CHECK(CodeOf(f.server.admin(), &A::Drain, f.admin.key) == grpc::StatusCode::OK);
}

TEST_CASE("streams need a key as well") {
  Fixture f;
  for (const std::string& key : {std::string(), f.a.key}) {
    const auto expected = key.empty() ? grpc::StatusCode::UNAUTHENTICATED : grpc::StatusCode::OK;
    grpc::ClientContext context;
    SetKey(key, &context);
    const auto stream = f.server.generation().GenerateStream(&context, TextRequest("abc"));
    v1::GenerateStreamResponse message;
    while (stream->Read(&message)) continue;
    CHECK(stream->Finish().error_code() == expected);

    grpc::ClientContext watch_context;
    SetKey(key, &watch_context);
    const auto watch = f.server.cache().WatchCacheStats(&watch_context, {});
    v1::CacheStats stats;
    CHECK(watch->Read(&stats) == !key.empty());
    if (!key.empty()) watch_context.TryCancel();
    const grpc::StatusCode end = watch->Finish().error_code();
    CHECK(end == (key.empty() ? grpc::StatusCode::UNAUTHENTICATED : grpc::StatusCode::CANCELLED));
  }
}

TEST_CASE("of requests, a tenant sees its own, and an admin all") {
  Fixture f(EndlessAnswers());
  grpc::ClientContext context;
  SetKey(f.a.key, &context);
  const auto stream = f.server.generation().GenerateStream(&context, TextRequest("abc"));
  ReadFirstChunk(*stream);
  const StreamDrain drain(stream.get());
  const auto seen_by = [&](const std::string& key) {
    const v1::CacheStats stats = StatsFor(f, key);
    CHECK(stats.requests_running() == 1);
    CHECK(stats.tenants_size() == stats.requests_size());
    return stats.requests_size();
  };
  CHECK(seen_by(f.a.key) == 1);
  CHECK(seen_by(f.b.key) == 0);
  CHECK(seen_by(f.admin.key) == 1);
  HttpClient client(f.server);
  CHECK(client.Get("/v1/cache", {{"Authorization", "Bearer " + f.b.key}}).body["requests"].empty());
  CHECK(client.Get("/v1/cache", {{"Authorization", "Bearer " + f.a.key}}).body["requests"].size() == 1);
  context.TryCancel();
}

TEST_CASE("HTTP needs the key too, says so, and serves the next request of the connection") {
  Fixture f;
  RawConnection connection(f.server);
  connection.SendRequest("/v1/completions", {{"prompt", std::string(100'000, 'x')}});
  CHECK(connection.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 401"));
  HttpClient client(f.server);
  for (const char* path : {"/v1/models", "/v1/models/test-model", "/v1/cache"}) {
    CHECK(client.Get(path).code == 401);
    CHECK(client.Get(path, {{"Authorization", "Bearer wrong"}}).code == 401);
    CHECK(client.Get(path, {{"Authorization", "Bearer " + f.a.key}}).code == 200);
  }
  for (const char* path : {"/v1/completions", "/v1/chat/completions", "/tokenize", "/detokenize"}) {
    const auto response = client.Post(path, {{"prompt", "abc"}});
    CHECK(response.code == 401);
    CHECK(response.body["error"]["type"] == "authentication_error");
  }
  for (const char* path : {"/health", "/ready", "/metrics", "/"}) {
    INFO(path);
    CHECK(client.Get(path).code == 200);
  }
  // The one of the raw connection, and those just now.
  CHECK(client.GetText("/metrics").find("quire_refused_requests_total{reason=\"UNAUTHENTICATED\"} 5") !=
        std::string::npos);
}

TEST_CASE("a call with two keys has none") {
  Fixture f;
  grpc::ClientContext context;
  SetKey(f.a.key, &context);
  SetKey(f.b.key, &context);
  v1::ListModelsResponse response;
  CHECK(f.server.generation().ListModels(&context, {}, &response).error_code() == grpc::StatusCode::UNAUTHENTICATED);
  HttpClient client(f.server);
  CHECK(
      client.Get("/v1/models", {{"Authorization", "Bearer " + f.a.key}, {"Authorization", "Bearer " + f.b.key}}).code ==
      401);
}

TEST_CASE("what the file says tenants may use is in force after each reload, for what runs too") {
  Fixture f(EndlessAnswers());
  const auto write = [&](const std::string& tenants) {
    std::ofstream(f.folder.File("keys.json"))
        << "{\"keys\": [" << f.a.entry << "," << f.b.entry << "," << f.admin.entry << "]" << tenants << "}";
    f.server.server().Reload();
  };
  grpc::ClientContext context;
  SetKey(f.a.key, &context);
  const auto stream = f.server.generation().GenerateStream(&context, TextRequest("abc"));
  v1::GenerateStreamResponse message;
  REQUIRE(stream->Read(&message));
  const StreamDrain drain(stream.get());
  const auto weight = [&] {
    const v1::CacheStats stats = StatsFor(f, f.a.key);
    REQUIRE(stats.tenants_size() == 1);
    return stats.tenants(0).weight();
  };
  v1::GenerateRequest brief = TextRequest("abc");
  brief.mutable_sampling()->set_max_tokens(1);
  const auto code = [&](const std::string& key) {
    return CodeOf(f.server.generation(), &v1::Generation::Stub::Generate, key, brief);
  };
  CHECK(weight() == 1);
  write(R"(, "tenants": {"team-a": {"weight": 4}, "team-b": {"requests_per_minute": 1}})");
  CHECK(weight() == 4);
  CHECK(code(f.b.key) == grpc::StatusCode::OK);
  CHECK(code(f.b.key) == grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(code(f.a.key) == grpc::StatusCode::OK);
  write("");
  CHECK(weight() == 1);
  CHECK(code(f.b.key) == grpc::StatusCode::OK);
  context.TryCancel();
}

TEST_CASE("a tenant past its rate is told so, and when to come back; others are not touched") {
  TestServerOptions options;
  options.rate_limits = {{"team-a", {.requests_per_minute = 2, .tokens_per_minute = {}}}};
  Fixture f(options);
  using G = v1::Generation::Stub;
  CHECK(CodeOf(f.server.generation(), &G::Generate, f.a.key, TextRequest("abc")) == grpc::StatusCode::OK);
  CHECK(CodeOf(f.server.generation(), &G::Generate, f.a.key, TextRequest("abc")) == grpc::StatusCode::OK);
  CHECK(CodeOf(f.server.generation(), &G::Generate, f.a.key, TextRequest("abc")) ==
        grpc::StatusCode::RESOURCE_EXHAUSTED);
  CHECK(CodeOf(f.server.generation(), &G::Generate, f.b.key, TextRequest("abc")) == grpc::StatusCode::OK);
}

}  // namespace
}  // namespace quire::testing
