#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "client/command.h"
#include "client/load_call.h"
#include "client/load_plan.h"
#include "client/load_report.h"

namespace quire {

// `quire load`: sends many requests and tells what they saw.
class LoadCommand : public Command {
 public:
  explicit LoadCommand(CLI::App& app);
  ExitCode Run(CommandContext& context) override;

 private:
  // What carries the calls, and the vocabulary to draw prompts from.
  struct Target {
    std::unique_ptr<LoadTransport> transport;
    int64_t vocab_size = 0;
  };

  // Fill `target`, or tell why not.
  ExitCode FindTarget(CommandContext& context, Target* target);
  ExitCode FindGrpcTarget(CommandContext& context, Target* target);
  ExitCode FindHttpTarget(CommandContext& context, Target* target);
  ExitCode Report(const LoadResult& result, CommandContext& context) const;

  LoadOptions options_;
  LatencyLimits limits_;
  std::optional<std::string> http_url_;  // unset: gRPC
  std::optional<int64_t> http_vocab_size_;
  std::string http_body_ = "{}";
  std::vector<std::string> tenant_shares_;  // NAME=SHARE
};

}  // namespace quire
