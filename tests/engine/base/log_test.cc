#include "engine/base/log.h"

#include <catch2/catch_test_macros.hpp>
#include <catch2/generators/catch_generators.hpp>
#include <string>

#include "engine/base/status.h"

namespace quire {
namespace {

TEST_CASE("the log takes its levels") {
  const std::string level = GENERATE("debug", "info", "warning", "error", "off");
  CHECK(log::Configure(level).ok());
}

TEST_CASE("the log refuses another word by name") {
  const absl::Status status = log::Configure("loud");
  CHECK(FieldOf(status) == "log_level");
  CHECK(status.message() == "log_level: got loud, expected debug, info, warning, error or off");
}

TEST_CASE("the log refuses another format by name") {
  CHECK(FieldOf(log::Configure("info", "xml")) == "log_format");
  CHECK(log::Configure("info", "json").ok());
}

}  // namespace
}  // namespace quire
