#pragma once

#include "client/cancel_signal.h"
#include "client/command.h"

namespace quire {

// Parses the arguments of `quire`, runs the command they name, and returns the exit code.
ExitCode RunCommandLine(int argc, const char* const* argv, const Console& console, CancelSignal& cancel);

}  // namespace quire
