#include "server/security/key_file.h"

#include <catch2/catch_test_macros.hpp>
#include <chrono>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/status.h"
#include "tests/support/fake_clock.h"
#include "tests/support/temp_dir.h"

namespace quire::testing {
namespace {

using std::chrono::seconds;

// Of what is no good file of keys.
std::string MessageOf(const std::string& text) {
  const absl::Status status = KeyFile::Parse(text, "keys.json").status();
  CHECK(status.code() == absl::StatusCode::kInvalidArgument);
  return std::string(status.message());
}

TEST_CASE("a file of keys that is nested without end is refused") {
  constexpr size_t kDepth = 2'000'000;
  const std::string nested = std::string(kDepth, '[') + std::string(kDepth, ']');
  CHECK_FALSE(KeyFile::Parse("{\"keys\": [" + nested + "]}", "keys.json").ok());
  CHECK_FALSE(KeyFile::Parse("{\"keys\": [{\"tenant\": " + nested + "}]}", "keys.json").ok());
  CHECK_FALSE(KeyFile::Parse("{\"keys\": [], \"tenants\": {\"a\": " + nested + "}}", "keys.json").ok());
}

TEST_CASE("a file of keys that can't be used names what is wrong") {
  const std::string hash(64, 'a');
  const auto entry = [&](const std::string& members) { return "{\"keys\": [{" + members + "}]}"; };
  CHECK(MessageOf("").find("keys.json: got something else") == 0);
  CHECK(MessageOf("[]").find("{\"keys\": [...]}") != std::string::npos);
  CHECK(MessageOf(R"({"keys": [], "more": 1})").find("{\"keys\": [...]}") != std::string::npos);
  CHECK(MessageOf(entry(R"("tenant": "a")")).find("keys[0].sha256: got 0 bytes") != std::string::npos);
  CHECK(MessageOf(entry(R"("sha256": "quire_secret", "tenant": "a")")).find("secret") == std::string::npos);
  CHECK(MessageOf(entry("\"sha256\": \"" + hash + "\"")).find("keys[0].tenant") != std::string::npos);
  CHECK(MessageOf(entry("\"sha256\": \"" + hash + R"(", "tenant": "a", "admin": 1)"))
            .find("keys[0].admin: got a value of type number") != std::string::npos);
  CHECK(MessageOf(entry("\"sha256\": \"" + hash + R"(", "tenant": "a", "role": "x")")).find("another name") !=
        std::string::npos);
  for (const char* misplaced :
       {R"({"keys": ["quire_secret"]})", R"({"keys": [{"quire_secret": "a"}]})",
        R"({"keys": [{"sha256": ["quire_secret"], "tenant": "a"}]})",
        R"({"keys": [{"sha256": "quire_secret", "tenant": "a"}]})", R"({"keys": [{"tenant": {"quire_secret": 1}}]})",
        R"({"keys": [], "tenants": "quire_secret"})", R"({"keys": [], "tenants": {"a": ["quire_secret"]}})",
        R"({"keys": [], "tenants": {"a": {"weight": "quire_secret"}}})",
        R"({"keys": [], "tenants": {"a": {"max_kv_blocks": "quire_secret"}}})",
        R"({"keys": [], "tenants": {"a": {"quire_secret": 1}}})", R"({"quire_secret": 1, "quire_secret": 2})",
        R"({"keys": [], "tenants": {"a": {"quire_secret": 1, "quire_secret": 2}}})"}) {
    INFO(misplaced);
    CHECK(MessageOf(misplaced).find("secret") == std::string::npos);
  }
  const std::string twice = "{\"sha256\": \"" + hash + R"(", "tenant": "a"})";
  CHECK(MessageOf("{\"keys\": [" + twice + "," + twice + "]}").find("keys[1].sha256") != std::string::npos);
  CHECK(KeyFile::Parse("{\"keys\": [" + twice + "]} // a comment", "keys.json")->keys.size() == 1);
  CHECK(KeyFile::Load("/no/such/file").status().message().find("/no/such/file") != std::string::npos);
}

TEST_CASE("the file may say what tenants may use") {
  CHECK_FALSE(KeyFile::Parse(R"({"keys": []})", "keys.json")->tenants.has_value());
  const auto file = KeyFile::Parse(
      R"({"tenants": {"a": {"weight": 2, "requests_per_minute": 5}, "*": {"max_kv_blocks": 7}}, "keys": []})",
      "keys.json");
  REQUIRE(file.ok());
  REQUIRE(file->tenants.has_value());
  CHECK(file->tenants->limits.at("a").weight == 2);
  CHECK(file->tenants->rates.at("a").requests_per_minute == 5);
  CHECK(file->tenants->limits.at("*").max_kv_blocks == 7);
}

TEST_CASE("what is wrong with tenants is told by path, tenant and member") {
  CHECK(MessageOf(R"({"tenants": {}})").find("keys.json: got something else") == 0);
  CHECK(MessageOf(R"({"keys": [], "tenants": []})").find("keys.json: tenants: got a value of type array") == 0);
  CHECK(MessageOf(R"({"keys": [], "tenants": {"a": {"weight": 0}}})").find("keys.json: tenants.a.weight: got") == 0);
  CHECK(MessageOf(R"({"keys": [], "tenants": {"a": {"wieght": 1}}})").find("keys.json: tenants.a: got a member") == 0);
  // As long as a key.
  CHECK(MessageOf("{\"keys\": [], \"tenants\": {\"" + MakeApiKey("a", false)->key + "\": {}}}")
            .find("keys.json: tenants: got 70 bytes") == 0);
}

TEST_CASE("a member that stands twice in an object is refused, and not the last one taken") {
  CHECK(MessageOf(R"({"keys": [], "keys": []})").find("got \"keys\" twice") != std::string::npos);
  CHECK(MessageOf(R"({"keys": [], "tenants": {}, "tenants": {}})").find("got \"tenants\" twice") != std::string::npos);
  const std::string hash(64, 'a');
  for (const std::string& twice : {R"({"keys": [{"sha256": ")" + hash + R"(", "tenant": "a", "tenant": "b"}]})",
                                   std::string(R"({"keys": [], "tenants": {"a": {}, "b": {}, "a": {}}})"),
                                   std::string(R"({"keys": [], "tenants": {"a": {"weight": 1, "weight": 2}}})")}) {
    INFO(twice);
    CHECK(MessageOf(twice).find("a member twice in one object") != std::string::npos);
  }
  CHECK(KeyFile::Parse("{\"keys\": [{\"sha256\": \"" + hash + R"(", "tenant": "keys"}], )" +
                           R"("tenants": {"keys": {"weight": 1}, "a": {"weight": 1}}})",
                       "keys.json")
            .ok());
}

// A file of keys that is open, and what tenants may use as its watch was told.
struct Watched {
  Watched() {
    Write(R"({"keys": []})");
    auto opened = OpenKeyFile(path, /*tenants_are_set=*/false, &clock);
    REQUIRE(opened.ok());
    file = *std::move(opened);
    file->Watch([this](const KeyFile& loaded) {
      weights.push_back(loaded.tenants ? std::optional(loaded.tenants->limits.at("a").weight) : std::nullopt);
    });
  }
  void Write(const std::string& text) const { std::ofstream(path) << text; }
  void WriteWeight(const std::string& weight) const {
    Write(R"({"keys": [], "tenants": {"a": {"weight": )" + weight + "}}}");
  }

  TempDir folder;
  std::string path = folder.File("keys.json");
  FakeClock clock;
  std::unique_ptr<ReloadableFile<KeyFile>> file;
  std::vector<std::optional<double>> weights;
};

TEST_CASE("who watches the file is told what it says now, and each change before anybody gets it") {
  using Weights = std::vector<std::optional<double>>;
  Watched watched;
  CHECK(watched.weights == Weights{std::nullopt});
  watched.WriteWeight("2");
  watched.file->Get();
  CHECK(watched.weights.size() == 1);
  watched.clock.Advance(seconds(1));
  const auto file = watched.file->Get();
  CHECK(watched.weights == Weights{std::nullopt, 2});
  CHECK(file->tenants->limits.at("a").weight == 2);

  watched.WriteWeight("\"none\"");
  watched.file->Reload();
  CHECK(watched.weights.size() == 2);
  CHECK(watched.file->Get()->tenants->limits.at("a").weight == 2);
  watched.WriteWeight("4");
  watched.file->Reload();
  watched.Write(R"({"keys": []})");
  watched.file->Reload();
  CHECK(watched.weights == Weights{std::nullopt, 2, 4, std::nullopt});
}

TEST_CASE("tenants are said in one place: beside the setting, a file that has them can't be used") {
  Watched watched;
  auto opened = OpenKeyFile(watched.path, /*tenants_are_set=*/true, &watched.clock);
  REQUIRE(opened.ok());
  watched.WriteWeight("2");
  (*opened)->Reload();
  CHECK_FALSE((*opened)->Get()->tenants.has_value());
  const absl::Status refused = OpenKeyFile(watched.path, /*tenants_are_set=*/true, &watched.clock).status();
  CHECK(FieldOf(refused) == "tenants");
  CHECK(refused.message().find(watched.path) != std::string::npos);
}

}  // namespace
}  // namespace quire::testing
