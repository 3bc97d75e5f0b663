#include "client/prompt_input.h"

#include "client/failure.h"
#include "client/line_reader.h"
#include "client/utf8.h"

namespace quire {

ExitCode ReadPrompt(const std::string& argument, CommandContext& context, std::string& prompt) {
  prompt = argument;
  if (argument == "-") {
    LineReader reader(context.console.input_fd, context.cancel);
    if (reader.ReadAll(prompt) == ReadOutcome::kCancelled) {
      return ReportFailure(grpc::Status::CANCELLED, context);
    }
  }
  if (!IsValidUtf8(prompt)) {
    return ReportUsage("the text is not valid UTF-8", context);
  }
  return ExitCode::kOk;
}

}  // namespace quire
