#pragma once

#include <string>
#include <vector>

#include "client/command.h"
#include "client/load_plan.h"
#include "client/load_report.h"

namespace quire {

// `quire load`: sends many requests and tells what they saw.
class LoadCommand : public Command {
 public:
  explicit LoadCommand(CLI::App& app);
  ExitCode Run(CommandContext& context) override;

 private:
  LoadOptions options_;
  LatencyLimits limits_;
  std::vector<std::string> tenant_shares_;  // NAME=SHARE
};

}  // namespace quire
