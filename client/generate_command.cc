#include "client/generate_command.h"

#include <ostream>

#include "client/answer.h"
#include "client/failure.h"
#include "client/prompt_input.h"

namespace quire {

GenerateCommand::GenerateCommand(CLI::App& app) : Command(&app), flags_(app, /*for_chat=*/false) {
  app.add_option("PROMPT", prompt_, "The text to continue; - reads standard input");
  app.add_flag("--stats", stats_, "Print tokens, time to first token and tokens/s to standard error");
  app.add_option("--input", batch_.input_path, "Answer each line of this JSON Lines file instead of PROMPT")
      ->type_name("FILE");
  app.add_option("--output", batch_.output_path, "Where the answers to --input go; what it holds is not asked again")
      ->type_name("FILE");
  app.add_option("--concurrency", batch_.concurrency, "Requests of --input in flight at once")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(1, 1024));
  app.add_option("--retries", batch_.retry.max_retries, "Retries of a refused or lost request of --input")
      ->type_name("N")
      ->capture_default_str()
      ->check(CLI::Range(0, 1000));
}

ExitCode GenerateCommand::Run(CommandContext& context) {
  const bool is_batch = !batch_.input_path.empty();
  if (is_batch == prompt_.has_value()) {
    return ReportUsage("generate: give either PROMPT or --input FILE", context);
  }
  if (is_batch == batch_.output_path.empty()) {
    return ReportUsage("generate: --input and --output go together", context);
  }
  return is_batch ? RunBatch(batch_, flags_, context) : GenerateOne(context);
}

ExitCode GenerateCommand::GenerateOne(CommandContext& context) {
  std::string prompt;
  if (const ExitCode code = ReadPrompt(*prompt_, context, prompt); code != ExitCode::kOk) {
    return code;
  }
  if (const ExitCode code = Connect(context); code != ExitCode::kOk) {
    return code;
  }
  Answer answer;
  const grpc::Status status = StreamAnswer(flags_.RequestFor(prompt), context, answer);
  if (!status.ok()) {
    return ReportFailure(status, context);
  }
  if (context.json) {
    PrintJson(AnswerJson(answer.response), context);
  } else {
    context.console.err << LogprobsTable(answer.response);
  }
  if (stats_) {
    context.console.err << AnswerStats(answer);
  }
  return ExitCode::kOk;
}

}  // namespace quire
