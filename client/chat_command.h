#pragma once

#include <string>

#include "client/command.h"
#include "client/line_reader.h"
#include "client/request_flags.h"

namespace quire {

// `quire chat`: a conversation, one line a turn. Ctrl-C stops the answer and keeps the conversation;
// Ctrl-D, the end of the input, leaves.
class ChatCommand : public Command {
 public:
  explicit ChatCommand(CLI::App& app);
  ExitCode Run(CommandContext& context) override;

 private:
  // The next line that is not blank. Ctrl-C ends it only if the input is not a terminal.
  ReadOutcome ReadTurn(LineReader& reader, CommandContext& context, std::string& turn) const;

  // Answers the conversation's last message and appends the answer, as far as it came. A turn without any
  // answer is taken back.
  ExitCode AnswerTurn(v1::GenerateRequest& conversation, CommandContext& context) const;

  RequestFlags flags_;
  bool stats_ = false;
};

}  // namespace quire
