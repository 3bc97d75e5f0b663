#include "client/chat_command.h"

#include <ostream>

#include "client/answer.h"
#include "client/failure.h"
#include "client/utf8.h"

namespace quire {

ChatCommand::ChatCommand(CLI::App& app) : Command(&app), flags_(app, /*for_chat=*/true) {
  app.add_flag("--stats", stats_, "Print tokens, time to first token and tokens/s of each answer to standard error");
}

ExitCode ChatCommand::Run(CommandContext& context) {
  if (const ExitCode code = Connect(context); code != ExitCode::kOk) {
    return code;
  }
  v1::GenerateRequest conversation = flags_.BaseRequest();
  if (flags_.system()) {
    AddChatMessage(conversation, "system", *flags_.system());
  }
  LineReader reader(context.console.input_fd, context.cancel);
  ExitCode worst = ExitCode::kOk;
  std::string turn;
  ReadOutcome outcome;
  while ((outcome = ReadTurn(reader, context, turn)) == ReadOutcome::kRead) {
    AddChatMessage(conversation, "user", turn);
    const ExitCode code = AnswerTurn(conversation, context);
    if (code == ExitCode::kInterrupted) {
      context.cancel.Reset();
    } else if (code != ExitCode::kOk) {
      worst = code;
    }
  }
  if (outcome == ReadOutcome::kCancelled) {
    return ReportFailure(grpc::Status::CANCELLED, context);
  }
  if (context.console.input_is_terminal) {
    context.console.err << std::endl;  // the shell's prompt begins a line of its own
    return ExitCode::kOk;              // a person has seen what failed
  }
  return worst;
}

ReadOutcome ChatCommand::ReadTurn(LineReader& reader, CommandContext& context, std::string& turn) const {
  const Console& console = context.console;
  while (true) {
    if (console.input_is_terminal) {
      console.err << "> " << std::flush;
    }
    const ReadOutcome outcome = reader.ReadLine(turn);
    if (outcome == ReadOutcome::kCancelled && console.input_is_terminal) {
      context.cancel.Reset();
      reader.DropPartialLine();
      console.err << "\n(Ctrl-D leaves)" << std::endl;
    } else if (outcome != ReadOutcome::kRead) {
      return outcome;
    } else if (!IsValidUtf8(turn)) {
      ReportUsage("the line is not valid UTF-8", context);
    } else if (turn.find_first_not_of(" \t\r") != std::string::npos) {
      return outcome;
    }
  }
}

ExitCode ChatCommand::AnswerTurn(v1::GenerateRequest& conversation, CommandContext& context) const {
  Answer answer;
  const grpc::Status status = StreamAnswer(conversation, context, answer);
  if (answer.text().empty() && !status.ok()) {
    conversation.mutable_chat()->mutable_messages()->RemoveLast();
  } else {
    AddChatMessage(conversation, "assistant", answer.text());
  }
  if (!status.ok()) {
    return ReportFailure(status, context);
  }
  if (context.json) {
    PrintJson(AnswerJson(answer.response), context);
  }
  if (stats_) {
    context.console.err << AnswerStats(answer);
  }
  return ExitCode::kOk;
}

}  // namespace quire
