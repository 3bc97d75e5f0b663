#include "tests/client/run_quire.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <sstream>
#include <stdexcept>

#include "client/command_line.h"

namespace quire::testing {

RunResult RunQuire(const std::vector<std::string>& arguments, const RunOptions& options) {
  std::array<int, 2> ends;
  // The text must fit in the pipe, because nobody reads while it is written.
  if (pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK) != 0 ||
      write(ends[1], options.input.data(), options.input.size()) != static_cast<ssize_t>(options.input.size())) {
    throw std::runtime_error("cannot make the standard input");
  }
  close(ends[1]);
  std::vector<const char*> argv = {"quire"};
  for (const std::string& argument : arguments) {
    argv.push_back(argument.c_str());
  }
  std::ostringstream out;
  std::ostringstream err;
  const Console console{.input_fd = ends[0],
                        .out = out,
                        .err = err,
                        .input_is_terminal = options.input_is_terminal,
                        .out_is_terminal = options.out_is_terminal,
                        .err_is_terminal = false};
  CancelSignal cancel;
  const ExitCode code = RunCommandLine(static_cast<int>(argv.size()), argv.data(), console, cancel);
  close(ends[0]);
  return {code, out.str(), err.str()};
}

}  // namespace quire::testing
