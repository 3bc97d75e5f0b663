// The file of callers' keys, and of what tenants may use.
#include <string>

#include "server/security/key_file.h"
#include "tests/fuzz/fuzz_target.h"

namespace quire::testing {
namespace {

constexpr std::string_view kStages[] = {"parsed"};
constexpr std::string_view kWords[] = {"\"sha256\":", "\"tenant\":",
                                       "\"admin\":",  "\"comment\":",
                                       "\"keys\":",   "\"tenants\":",
                                       "\"weight\":", "\"*\":",
                                       "0.5",         "true",
                                       "null",        "[",
                                       "{",           "}",
                                       "]",           ",",
                                       "//",          "/*",
                                       "\\u0000",     "\\ud800",
                                       "\"\"",        "[]"};

class ApiKeysFile final : public FuzzTarget {
 public:
  size_t Run(std::string_view input) override {
    const absl::StatusOr<KeyFile> file = KeyFile::Parse(std::string(input), "keys.json");
    if (file.ok()) file->keys.Find("quire_key");
    return file.ok() ? 1 : 0;
  }
};

}  // namespace

FuzzTargetKind ApiKeysTarget() {
  return {"api_keys", kStages, kWords, [] { return std::make_unique<ApiKeysFile>(); }};
}

}  // namespace quire::testing
