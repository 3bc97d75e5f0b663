#pragma once

#include <string>

#include "client/command.h"
#include "client/request_flags.h"
#include "client/retry_policy.h"

namespace quire {

struct BatchOptions {
  std::string input_path;
  std::string output_path;
  int concurrency = 8;  // requests in flight at once, >= 1
  RetryPolicy retry;
};

// `quire generate --input FILE --output FILE`: answers each line of the input that the output does not answer
// yet, and appends the answers in the order in which they end. Run again, it goes on where it stopped.
ExitCode RunBatch(const BatchOptions& options, const RequestFlags& flags, CommandContext& context);

}  // namespace quire
