#include "tests/support/test_data.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdlib>
#include <string>

namespace quire::testing {
namespace {

std::string Environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::filesystem::path SkipOrFailIfMissing(std::filesystem::path path, std::string_view how_to_get_it) {
  if (!std::filesystem::exists(path)) {
    const std::string message = path.string() + " is missing: " + std::string(how_to_get_it);
    if (Environment("CI") == "true") FAIL(message);
    SKIP(message);
  }
  return path;
}

std::filesystem::path ModelPath() {
  if (const std::string model = Environment("QUIRE_TEST_MODEL"); !model.empty()) return model;
  std::filesystem::path dir = Environment("QUIRE_MODEL_DIR");
  if (dir.empty()) dir = std::filesystem::path(Environment("HOME")) / ".cache/quire/models";
  return dir / "SmolLM2-135M-Instruct.Q4_1.gguf";
}

}  // namespace

std::filesystem::path TestDataDir() {
  if (const std::string dir = Environment("QUIRE_TEST_DATA"); !dir.empty()) return dir;
  return std::filesystem::path(QUIRE_REPOSITORY_DIR) / ".." / "shared" / "data";
}

std::filesystem::path RequireTestData(std::string_view name) {
  return SkipOrFailIfMissing(TestDataDir() / name, "set QUIRE_TEST_DATA to the folder that holds it");
}

std::filesystem::path RequireModel() {
  return SkipOrFailIfMissing(ModelPath(), "run scripts/fetch_model or set QUIRE_TEST_MODEL");
}

std::filesystem::path RepositoryData(std::string_view name) {
  std::filesystem::path path = std::filesystem::path(QUIRE_REPOSITORY_DIR) / "tests" / "data" / name;
  INFO(path);
  REQUIRE(std::filesystem::exists(path));
  return path;
}

}  // namespace quire::testing
