#include "engine/base/strings.h"

#include <catch2/catch_test_macros.hpp>
#include <cstdint>
#include <string>
#include <string_view>

namespace quire {
namespace {

TEST_CASE("StrCat joins strings of every kind and numbers") {
  const std::string owned = "owned";
  const std::string_view viewed = "viewed";
  CHECK(StrCat(owned, ", ", viewed, '!') == "owned, viewed!");
  CHECK(StrCat("tokens: ", int64_t{-7}, " of ", 18446744073709551615U) == "tokens: -7 of 18446744073709551615");
  CHECK(StrCat(0.5, " ", 0.1F) == "0.5 0.1");
}

}  // namespace
}  // namespace quire
