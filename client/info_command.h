#pragma once

#include <string>

#include "client/command.h"

namespace quire {

// `quire info`: what the server serves, and how.
class InfoCommand : public Command {
 public:
  explicit InfoCommand(CLI::App& app);
  ExitCode Run(CommandContext& context) override;

 private:
  std::string model_;
};

}  // namespace quire
