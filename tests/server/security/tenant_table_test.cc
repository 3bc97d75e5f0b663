#include "server/security/tenant_table.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <nlohmann/json.hpp>
#include <string>

#include "engine/base/status.h"

namespace quire {
namespace {

absl::StatusOr<TenantTable> Parse(const std::string& text, WrongValues wrong_values = WrongValues::kShown) {
  return ParseTenantTable("tenants", nlohmann::json::parse(text), wrong_values);
}

TEST_CASE("each member goes to the engine's limits or to the rates") {
  const std::string text =
      R"({"*":{"weight":1.0},"a":{"max_kv_blocks":3,"max_running_requests":2,"requests_per_minute":4,)"
      R"("tokens_per_minute":1099511627776,"weight":0.5}})";
  const auto table = Parse(text);
  REQUIRE(table.ok());
  const TenantLimits& limits = table->limits.at("a");
  CHECK(limits.weight == 0.5);
  CHECK(limits.max_running_requests == 2);
  CHECK(limits.max_kv_blocks == 3);
  CHECK(table->rates.at("a").requests_per_minute == 4);
  CHECK(table->rates.at("a").tokens_per_minute == int64_t{1} << 40);
  CHECK_FALSE(table->limits.at("*").max_kv_blocks.has_value());
  CHECK_FALSE(table->rates.at("*").requests_per_minute.has_value());
  CHECK(ValidateTenants(table->limits).ok());
  CHECK(ToJson(*table).dump() == text);
}

TEST_CASE("a wrong member is named, its value shown or hidden") {
  const auto [text, field, value] = GENERATE(table<std::string, std::string, std::string>({
      {R"("text")", "tenants", "text"},
      {R"({"a": "text"})", "tenants.a", "text"},
      {R"({"a": {"weight": "text"}})", "tenants.a.weight", "text"},
      {R"({"a": {"weight": 0.0009}})", "tenants.a.weight", "0.0009"},
      {R"({"a": {"weight": 1001}})", "tenants.a.weight", "1001"},
      {R"({"a": {"max_running_requests": 0}})", "tenants.a.max_running_requests", "0"},
      {R"({"a": {"max_kv_blocks": -1}})", "tenants.a.max_kv_blocks", "-1"},
      {R"({"a": {"max_kv_blocks": 18446744073709551615}})", "tenants.a.max_kv_blocks", "18446744073709551615"},
      {R"({"a": {"requests_per_minute": 1.5}})", "tenants.a.requests_per_minute", "1.5"},
      {R"({"a": {"tokens_per_minute": 1099511627777}})", "tenants.a.tokens_per_minute", "1099511627777"},
  }));
  INFO(text);
  const absl::Status shown = Parse(text).status();
  CHECK(FieldOf(shown) == field);
  CHECK(shown.message().find("got " + value) + shown.message().find("got \"" + value) != 2 * std::string::npos);
  const absl::Status hidden = Parse(text, WrongValues::kHidden).status();
  CHECK(FieldOf(hidden) == field);
  CHECK(hidden.message().find("got a value of type") != std::string::npos);
  CHECK(hidden.message().find("got " + value) == std::string::npos);
}

TEST_CASE("an unknown member is told by its name, or that there is one") {
  const std::string text = R"({"a": {"wieght": 1}})";
  CHECK(FieldOf(Parse(text).status()) == "tenants.a.wieght");
  const absl::Status hidden = Parse(text, WrongValues::kHidden).status();
  CHECK(FieldOf(hidden) == "tenants.a");
  CHECK(hidden.message().find("wieght") == std::string::npos);
  CHECK(hidden.message().find("weight, max_running_requests") != std::string::npos);
}

TEST_CASE("tenants' names are those that callers may have") {
  for (const char* bad : {R"({"": {}})", R"({"a\nb": {}})"}) CHECK(FieldOf(Parse(bad).status()) == "tenants");
  CHECK(FieldOf(Parse("{\"" + std::string(65, 't') + "\": {}}").status()) == "tenants");
}

}  // namespace
}  // namespace quire
