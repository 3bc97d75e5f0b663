#include <unistd.h>

#include <iostream>

#include "client/cancel_signal.h"
#include "client/command_line.h"
#include "client/interrupt_watcher.h"

int main(int argc, char** argv) {
  quire::CancelSignal cancel;
  const quire::InterruptWatcher watcher(cancel);
  const quire::Console console{.input_fd = STDIN_FILENO,
                               .out = std::cout,
                               .err = std::cerr,
                               .input_is_terminal = isatty(STDIN_FILENO) != 0,
                               .out_is_terminal = isatty(STDOUT_FILENO) != 0,
                               .err_is_terminal = isatty(STDERR_FILENO) != 0};
  return static_cast<int>(quire::RunCommandLine(argc, argv, console, cancel));
}
