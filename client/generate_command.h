#pragma once

#include <optional>
#include <string>

#include "client/batch_command.h"
#include "client/command.h"
#include "client/request_flags.h"

namespace quire {

// `quire generate PROMPT`: streams one answer. With --input, a file of requests instead (batch_command.h).
class GenerateCommand : public Command {
 public:
  explicit GenerateCommand(CLI::App& app);
  ExitCode Run(CommandContext& context) override;

 private:
  ExitCode GenerateOne(CommandContext& context);

  RequestFlags flags_;
  std::optional<std::string> prompt_;
  bool stats_ = false;
  BatchOptions batch_;
};

}  // namespace quire
