#include "server/generation/trace_context.h"

#include <catch2/catch_test_macros.hpp>
#include <string>

namespace quire {
namespace {

const std::string kTrace = "4bf92f3577b34da6a3ce929d0e0e4736";
const std::string kParent = "00f067aa0ba902b7";

TEST_CASE("the trace's id is taken from a traceparent") {
  CHECK(TraceIdIn("00-" + kTrace + "-" + kParent + "-01") == kTrace);
  CHECK(TraceIdIn("00-" + kTrace + "-" + kParent + "-00") == kTrace);
  CHECK(TraceIdIn("01-" + kTrace + "-" + kParent + "-00-more") == kTrace);  // of a later version
}

TEST_CASE("a traceparent that is none has no trace") {
  for (const std::string& bad : {
           std::string(),
           kTrace,
           "00-" + kTrace + "-" + kParent,
           "00-" + kTrace + "-" + kParent + "-1",
           "00-" + kTrace + "-" + kParent + "-01-more",
           "01-" + kTrace + "-" + kParent + "-01more",
           "ff-" + kTrace + "-" + kParent + "-01",
           "00-" + std::string(32, '0') + "-" + kParent + "-01",
           "00-" + kTrace + "-" + std::string(16, '0') + "-01",
           "00-4BF92F3577B34DA6A3CE929D0E0E4736-" + kParent + "-01",
           "00_" + kTrace + "-" + kParent + "-01",
           "00-" + kTrace.substr(1) + "\n-" + kParent + "-01",
       }) {
    INFO(bad);
    CHECK(TraceIdIn(bad).empty());
  }
}

}  // namespace
}  // namespace quire
