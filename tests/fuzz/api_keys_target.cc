// The file of callers' keys.
#include <string>

#include "server/security/api_keys.h"
#include "tests/fuzz/fuzz_target.h"

namespace quire::testing {
namespace {

constexpr std::string_view kStages[] = {"parsed"};
constexpr std::string_view kWords[] = {
    "\"sha256\":", "\"tenant\":", "\"admin\":", "\"comment\":", "\"keys\":", "true",    "null",    "[",    "{",
    "}",           "]",           ",",          "//",           "/*",        "\\u0000", "\\ud800", "\"\"", "[]"};

class ApiKeysFile final : public FuzzTarget {
 public:
  size_t Run(std::string_view input) override {
    const absl::StatusOr<ApiKeys> keys = ApiKeys::Parse(std::string(input), "keys.json");
    if (keys.ok()) keys->Find("quire_key");
    return keys.ok() ? 1 : 0;
  }
};

}  // namespace

FuzzTargetKind ApiKeysTarget() {
  return {"api_keys", kStages, kWords, [] { return std::make_unique<ApiKeysFile>(); }};
}

}  // namespace quire::testing
