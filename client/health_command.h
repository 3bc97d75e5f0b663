#pragma once

#include "client/command.h"

namespace quire {

// `quire health`: succeeds exactly if the server says SERVING.
class HealthCommand : public Command {
 public:
  explicit HealthCommand(CLI::App& app) : Command(&app) {}
  ExitCode Run(CommandContext& context) override;
};

}  // namespace quire
