#pragma once

#include <filesystem>
#include <string_view>

// Where tests find what is too large for tests/data. Missing data skips the running test case, but fails it
// where the environment says CI=true: a build that must show everything can't pass by skipping.

namespace quire::testing {

// The folder of large test data: $QUIRE_TEST_DATA, else ../shared/data beside the repository. May not exist.
std::filesystem::path TestDataDir();

// The file or folder `name` in TestDataDir(), which exists: "goldens/smollm2-135m-instruct-q4_1.json".
std::filesystem::path RequireTestData(std::string_view name);

// The real model, which exists: $QUIRE_TEST_MODEL, else SmolLM2-135M-Instruct.Q4_1.gguf in
// ${QUIRE_MODEL_DIR:-~/.cache/quire/models}.
std::filesystem::path RequireModel();

// A file of tests/data, the small data kept in the repository; fails the test case if it is missing.
std::filesystem::path RepositoryData(std::string_view name);

}  // namespace quire::testing
