#include "server/security/authenticator.h"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "engine/base/status.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temp_dir.h"

namespace quire::testing {
namespace {

using Metadata = std::map<std::string, std::string, std::less<>>;

absl::StatusOr<Caller> Ask(Authenticator& authenticator, const Metadata& metadata, bool is_loopback = false) {
  return authenticator.Authenticate({.metadata = [&metadata](std::string_view key) -> std::optional<std::string> {
                                       const auto found = metadata.find(key);
                                       if (found == metadata.end()) return std::nullopt;
                                       return found->second;
                                     },
                                     .is_loopback = is_loopback});
}

absl::StatusCode CodeFor(Authenticator& authenticator, const Metadata& metadata) {
  return Ask(authenticator, metadata).status().code();
}

Metadata WithKey(const std::string& key) { return {{"authorization", "Bearer " + key}}; }

// A file of keys that an authenticator reads.
struct KeyFile {
  void Write(const std::string& entries) const { std::ofstream(path) << "{\"keys\": [" << entries << "]}"; }
  std::unique_ptr<Authenticator> Open() const {
    auto authenticator = MakeKeyAuthenticator(path, &clock);
    REQUIRE(authenticator.ok());
    return *std::move(authenticator);
  }

  TempDir folder;
  std::string path = folder.File("keys.json");
  FakeClock clock;
};

TEST_CASE("without keys the tenant is what the call says, else default, and who is here is an admin") {
  const auto authenticator = MakeKeylessAuthenticator();
  CHECK(Ask(*authenticator, {})->tenant == "default");
  CHECK_FALSE(Ask(*authenticator, {})->is_admin);
  CHECK(Ask(*authenticator, {}, /*is_loopback=*/true)->is_admin);
  CHECK(Ask(*authenticator, {{"x-tenant-id", "team a"}})->tenant == "team a");
  CHECK(Ask(*authenticator, {{"x-tenant-id", std::string(64, 't')}})->tenant == std::string(64, 't'));
}

TEST_CASE("tenants that can't stand in logs are refused") {
  const auto authenticator = MakeKeylessAuthenticator();
  for (const std::string& bad : {std::string(), std::string(65, 't'), std::string("a\nb"), std::string("\xC3\xA9")}) {
    const absl::Status status = Ask(*authenticator, {{"x-tenant-id", bad}}).status();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(FieldOf(status) == "x-tenant-id");
  }
}

TEST_CASE("with keys a call is its key's tenant's, and no other's") {
  KeyFile file;
  const NewApiKey user = *MakeApiKey("team-a", /*is_admin=*/false);
  const NewApiKey admin = *MakeApiKey("ops", /*is_admin=*/true);
  file.Write(user.entry + "," + admin.entry);
  const auto authenticator = file.Open();
  const absl::StatusOr<Caller> caller = Ask(*authenticator, WithKey(user.key), /*is_loopback=*/true);
  REQUIRE(caller.ok());
  CHECK(caller->tenant == "team-a");
  CHECK_FALSE(caller->is_admin);
  CHECK(Ask(*authenticator, WithKey(admin.key))->is_admin);
  CHECK(RequireAdmin(*Ask(*authenticator, WithKey(admin.key))).ok());
  CHECK(RequireAdmin(*caller).code() == absl::StatusCode::kPermissionDenied);

  CHECK(CodeFor(*authenticator, {}) == absl::StatusCode::kUnauthenticated);
  CHECK(CodeFor(*authenticator, {{"authorization", user.key}}) == absl::StatusCode::kUnauthenticated);
  CHECK(CodeFor(*authenticator, {{"authorization", "Basic " + user.key}}) == absl::StatusCode::kUnauthenticated);
  CHECK(CodeFor(*authenticator, {{"authorization", "bearer   " + user.key}}) == absl::StatusCode::kOk);
  CHECK(CodeFor(*authenticator, WithKey(user.key + "0")) == absl::StatusCode::kUnauthenticated);
  CHECK(CodeFor(*authenticator, WithKey(user.key.substr(1))) == absl::StatusCode::kUnauthenticated);
  Metadata claimed = WithKey(user.key);
  claimed["x-tenant-id"] = "ops";
  CHECK(CodeFor(*authenticator, claimed) == absl::StatusCode::kPermissionDenied);
  claimed["x-tenant-id"] = "team-a";
  CHECK(CodeFor(*authenticator, claimed) == absl::StatusCode::kOk);
}

TEST_CASE("an error says nothing of the key") {
  KeyFile file;
  file.Write("");
  const std::string message(Ask(*file.Open(), WithKey("secret-text")).status().message());
  CHECK(message.find("secret-text") == std::string::npos);
}

TEST_CASE("a changed file is in force after a second, or at once when asked; a broken one is not") {
  KeyFile file;
  const NewApiKey first = *MakeApiKey("a", false);
  const NewApiKey second = *MakeApiKey("b", false);
  file.Write(first.entry);
  const auto authenticator = file.Open();
  file.Write(second.entry + "   ");  // another size: stamps may not be fine enough to tell the times apart
  CHECK(CodeFor(*authenticator, WithKey(first.key)) == absl::StatusCode::kOk);
  file.clock.Advance(std::chrono::seconds(1));
  CHECK(CodeFor(*authenticator, WithKey(first.key)) == absl::StatusCode::kUnauthenticated);
  CHECK(CodeFor(*authenticator, WithKey(second.key)) == absl::StatusCode::kOk);

  file.Write("oops");
  authenticator->Reload();
  CHECK(CodeFor(*authenticator, WithKey(second.key)) == absl::StatusCode::kOk);
  file.Write(first.entry);
  authenticator->Reload();
  CHECK(CodeFor(*authenticator, WithKey(second.key)) == absl::StatusCode::kUnauthenticated);
}

TEST_CASE("a file that can be read again is read again") {
  KeyFile file;
  const NewApiKey key = *MakeApiKey("a", false);
  file.Write("");
  const auto authenticator = file.Open();
  file.Write("broken");
  authenticator->Reload();
  file.Write(key.entry);
  std::filesystem::last_write_time(file.path, std::filesystem::file_time_type::min());  // as a copied file's may be
  file.clock.Advance(std::chrono::seconds(1));
  CHECK(CodeFor(*authenticator, WithKey(key.key)) == absl::StatusCode::kOk);
}

TEST_CASE("a file of keys that can't be used names what is wrong") {
  const std::string hash(64, 'a');
  const auto message = [](const std::string& text) {
    const absl::Status status = ApiKeys::Parse(text, "keys.json").status();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    return std::string(status.message());
  };
  const auto entry = [&](const std::string& members) { return "{\"keys\": [{" + members + "}]}"; };
  CHECK(message("").find("keys.json: got something else") == 0);
  CHECK(message("[]").find("{\"keys\": [...]}") != std::string::npos);
  CHECK(message(R"({"keys": [], "more": 1})").find("{\"keys\": [...]}") != std::string::npos);
  CHECK(message(entry(R"("tenant": "a")")).find("keys[0].sha256: got 0 bytes") != std::string::npos);
  CHECK(message(entry(R"("sha256": "quire_secret", "tenant": "a")")).find("secret") == std::string::npos);
  CHECK(message(entry("\"sha256\": \"" + hash + "\"")).find("keys[0].tenant") != std::string::npos);
  CHECK(message(entry("\"sha256\": \"" + hash + R"(", "tenant": "a", "admin": 1)"))
            .find("keys[0].admin: got a value of type number") != std::string::npos);
  CHECK(message(entry("\"sha256\": \"" + hash + R"(", "tenant": "a", "role": "x")")).find("another name") !=
        std::string::npos);
  for (const char* misplaced :
       {R"({"keys": ["quire_secret"]})", R"({"keys": [{"quire_secret": "a"}]})",
        R"({"keys": [{"sha256": ["quire_secret"], "tenant": "a"}]})",
        R"({"keys": [{"sha256": "quire_secret", "tenant": "a"}]})", R"({"keys": [{"tenant": {"quire_secret": 1}}]})"}) {
    INFO(misplaced);
    CHECK(message(misplaced).find("secret") == std::string::npos);
  }
  const std::string twice = "{\"sha256\": \"" + hash + R"(", "tenant": "a"})";
  CHECK(message("{\"keys\": [" + twice + "," + twice + "]}").find("keys[1].sha256") != std::string::npos);
  CHECK(ApiKeys::Parse("{\"keys\": [" + twice + "]} // a comment", "keys.json")->size() == 1);
  CHECK(ApiKeys::Load("/no/such/file").status().message().find("/no/such/file") != std::string::npos);
}

}  // namespace
}  // namespace quire::testing
