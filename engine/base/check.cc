#include "engine/base/check.h"

#include <cstdlib>

#include "engine/base/log.h"

namespace quire::internal {

void CheckFailed(const char* file, int line, const std::string& what) {
  log::Error("{}:{}: check failed: {}", file, line, what);
  log::Flush();
  std::abort();
}

}  // namespace quire::internal
