#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "client/command.h"

namespace quire {

// `quire detokenize IDS...`: the text of tokens.
class DetokenizeCommand : public Command {
 public:
  explicit DetokenizeCommand(CLI::App& app);
  ExitCode Run(CommandContext& context) override;

 private:
  std::string model_;
  std::vector<int32_t> token_ids_;
  bool special_tokens_ = false;
};

}  // namespace quire
