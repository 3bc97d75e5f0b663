#pragma once

#include <optional>
#include <string>

#include "client/command.h"

namespace quire {

// `quire cache`: the KV cache and the memory budget, once or again and again, or how the cache is set up.
class CacheCommand : public Command {
 public:
  explicit CacheCommand(CLI::App& app);
  ExitCode Run(CommandContext& context) override;

 private:
  grpc::Status Watch(CommandContext& context) const;
  grpc::Status ShowOnce(CommandContext& context) const;
  grpc::Status ShowConfig(CommandContext& context) const;

  CLI::Option* watch_;
  double interval_seconds_ = 1.0;
  bool requests_ = false;
  bool config_ = false;
};

}  // namespace quire
