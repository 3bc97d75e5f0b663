#include "engine/text/utf8.h"

#include "catch2/catch_test_macros.hpp"

namespace quire {
namespace {

std::string Repair(std::string bytes) {
  std::string text;
  MoveUtf8(bytes, /*is_last=*/true, text);
  CHECK(bytes.empty());
  return text;
}

TEST_CASE("valid characters of every length pass") {
  const std::string text = "a\xC2\x80\xDF\xBF\xE0\xA0\x80\xED\x9F\xBF\xEF\xBF\xBF\xF0\x90\x80\x80\xF4\x8F\xBF\xBF";
  CHECK(Utf8ValidPrefix(text) == text.size());
  CHECK(Repair(text) == text);
  CHECK(Utf8ValidPrefix("") == 0);
}

TEST_CASE("the first broken byte is found") {
  CHECK(Utf8ValidPrefix("ab\xFF") == 2);
  CHECK(Utf8ValidPrefix("\xC3\xA9\xC3") == 2);
  for (const char* text : {"\x80", "\xC1\xBF", "\xE0\x9F\xBF", "\xED\xA0\x80", "\xF0\x8F\xBF\xBF", "\xF4\x90\x80\x80",
                           "\xF5\x80\x80\x80"}) {
    CHECK(Utf8ValidPrefix(text) == 0);
  }
}

TEST_CASE("each longest broken beginning becomes one replacement") {
  CHECK(Repair("a\xF0\x9F\x98z") == "a\xEF\xBF\xBDz");
  CHECK(Repair("\xF0\x9F") == "\xEF\xBF\xBD");
  CHECK(Repair("\xED\xA0\x80") == "\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(Repair("\xC3\xC3\xA9") == "\xEF\xBF\xBD\xC3\xA9");
}

TEST_CASE("an unfinished character stays for its end") {
  std::string bytes = "a\xE6\x97";
  std::string text;
  MoveUtf8(bytes, /*is_last=*/false, text);
  CHECK(text == "a");
  CHECK(bytes == "\xE6\x97");
  bytes += "\xA5";
  MoveUtf8(bytes, /*is_last=*/false, text);
  CHECK(text == "a\xE6\x97\xA5");
  CHECK(bytes.empty());
}

}  // namespace
}  // namespace quire
