#pragma once

#include <string>

#include "client/command.h"

namespace quire {

// `quire tokenize TEXT`: the tokens that the model's tokenizer makes of a text.
class TokenizeCommand : public Command {
 public:
  explicit TokenizeCommand(CLI::App& app);
  ExitCode Run(CommandContext& context) override;

 private:
  std::string model_;
  std::string text_;
  bool chat_ = false;
  bool parse_special_ = false;
  bool ids_only_ = false;
};

}  // namespace quire
