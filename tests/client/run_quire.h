#pragma once

#include <string>
#include <vector>

#include "client/cancel_signal.h"
#include "client/exit_code.h"

namespace quire::testing {

struct RunResult {
  ExitCode code;
  std::string out;
  std::string err;
};

struct RunOptions {
  std::string input;  // what standard input holds
  bool out_is_terminal = false;
  bool input_is_terminal = false;
};

// Runs `quire ARGUMENTS...` in this process.
RunResult RunQuire(const std::vector<std::string>& arguments, const RunOptions& options = {});

}  // namespace quire::testing
