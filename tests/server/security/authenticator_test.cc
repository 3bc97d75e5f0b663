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

// A file of keys, and an authenticator that knows them.
struct Fixture {
  explicit Fixture(const std::string& entries) {
    Write(entries);
    auto opened = OpenKeyFile(path, /*tenants_are_set=*/false, &clock);
    REQUIRE(opened.ok());
    file = *std::move(opened);
    authenticator = MakeKeyAuthenticator(file.get());
  }
  void Write(const std::string& entries) const { std::ofstream(path) << "{\"keys\": [" << entries << "]}"; }

  TempDir folder;
  std::string path = folder.File("keys.json");
  FakeClock clock;
  std::unique_ptr<ReloadableFile<KeyFile>> file;
  std::unique_ptr<Authenticator> authenticator;
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
  const NewApiKey user = *MakeApiKey("team-a", /*is_admin=*/false);
  const NewApiKey admin = *MakeApiKey("ops", /*is_admin=*/true);
  const Fixture fixture(user.entry + "," + admin.entry);
  const auto& authenticator = fixture.authenticator;
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
  const Fixture fixture("");
  const std::string message(Ask(*fixture.authenticator, WithKey("secret-text")).status().message());
  CHECK(message.find("secret-text") == std::string::npos);
}

TEST_CASE("a changed file is in force after a second, or at once when asked; a broken one is not") {
  const NewApiKey first = *MakeApiKey("a", false);
  const NewApiKey second = *MakeApiKey("b", false);
  Fixture fixture(first.entry);
  const auto& authenticator = fixture.authenticator;
  fixture.Write(second.entry + "   ");  // another size: stamps may not be fine enough to tell the times apart
  CHECK(CodeFor(*authenticator, WithKey(first.key)) == absl::StatusCode::kOk);
  fixture.clock.Advance(std::chrono::seconds(1));
  CHECK(CodeFor(*authenticator, WithKey(first.key)) == absl::StatusCode::kUnauthenticated);
  CHECK(CodeFor(*authenticator, WithKey(second.key)) == absl::StatusCode::kOk);

  fixture.Write("oops");
  fixture.file->Reload();
  CHECK(CodeFor(*authenticator, WithKey(second.key)) == absl::StatusCode::kOk);
  fixture.Write(first.entry);
  fixture.file->Reload();
  CHECK(CodeFor(*authenticator, WithKey(second.key)) == absl::StatusCode::kUnauthenticated);
}

TEST_CASE("a file that can be read again is read again") {
  const NewApiKey key = *MakeApiKey("a", false);
  Fixture fixture("");
  fixture.Write("broken");
  fixture.file->Reload();
  fixture.Write(key.entry);
  std::filesystem::last_write_time(fixture.path, std::filesystem::file_time_type::min());  // as a copied file's may be
  fixture.clock.Advance(std::chrono::seconds(1));
  CHECK(CodeFor(*fixture.authenticator, WithKey(key.key)) == absl::StatusCode::kOk);
}

}  // namespace
}  // namespace quire::testing
