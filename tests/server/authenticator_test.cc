#include "server/authenticator.h"

#include <catch2/catch_test_macros.hpp>
#include <string>

#include "engine/base/status.h"

namespace quire {
namespace {

absl::StatusOr<std::string> TenantFor(std::optional<std::string> value) {
  return KeylessAuthenticator().Authenticate(
      [&value](std::string_view key) { return key == "x-tenant-id" ? value : std::nullopt; });
}

TEST_CASE("the tenant is what the call says, else default") {
  CHECK(*TenantFor(std::nullopt) == "default");
  CHECK(*TenantFor("team a") == "team a");
  CHECK(*TenantFor(std::string(64, 't')) == std::string(64, 't'));
}

TEST_CASE("tenants that can't stand in logs are refused") {
  for (const std::string& bad : {std::string(), std::string(65, 't'), std::string("a\nb"), std::string("\xC3\xA9")}) {
    CHECK(TenantFor(bad).status().code() == absl::StatusCode::kInvalidArgument);
    CHECK(FieldOf(TenantFor(bad).status()) == "x-tenant-id");
  }
}

}  // namespace
}  // namespace quire
