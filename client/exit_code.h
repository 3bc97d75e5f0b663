#pragma once

namespace quire {

// What the process says with its exit code; listed in --help and README.md.
enum class ExitCode : int {
  kOk = 0,
  kFailed = 1,         // the server refused or failed the request
  kUsage = 2,          // flags, arguments or files that cannot be used
  kCannotConnect = 3,  // nobody answers at the address
  kDeadline = 4,       // --timeout passed
  kInterrupted = 130,  // Ctrl-C
};

}  // namespace quire
