#pragma once

#include <CLI/CLI.hpp>
#include <iosfwd>
#include <string>

#include "client/cancel_signal.h"
#include "client/exit_code.h"
#include "client/generation_client.h"
#include "client/message_json.h"

namespace quire {

// Where a command reads and writes.
struct Console {
  int input_fd;
  std::ostream& out;
  std::ostream& err;
  bool input_is_terminal = false;
  bool out_is_terminal = false;
  bool err_is_terminal = false;
};

// What a command works with.
struct CommandContext {
  const Console& console;
  GenerationClient& client;
  CancelSignal& cancel;
  bool json = false;  // --json: results and errors are JSON on standard output
};

// One subcommand: declares its flags when made, and runs if it was chosen.
class Command {
 public:
  explicit Command(CLI::App* app) : app_(app) {}
  virtual ~Command() = default;
  Command(const Command&) = delete;
  Command& operator=(const Command&) = delete;

  virtual ExitCode Run(CommandContext& context) = 0;

  bool IsChosen() const { return app_->parsed(); }

 private:
  CLI::App* const app_;
};

// Text that is not quire's own, as the output may show it: escaped for a terminal, as it is otherwise.
std::string ForOutput(const std::string& text, const CommandContext& context);

// Writes `json` as one line.
void PrintJson(const Json& json, const CommandContext& context);

}  // namespace quire
