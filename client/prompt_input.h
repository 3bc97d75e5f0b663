#pragma once

#include <string>

#include "client/command.h"

namespace quire {

// `argument`, or all of standard input if it is "-". Reports and returns why it cannot be used: not UTF-8,
// or interrupted.
ExitCode ReadPrompt(const std::string& argument, CommandContext& context, std::string& prompt);

}  // namespace quire
