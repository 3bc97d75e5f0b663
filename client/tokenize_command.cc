#include "client/tokenize_command.h"

#include <ostream>
#include <vector>

#include "client/failure.h"
#include "client/number_format.h"
#include "client/prompt_input.h"
#include "client/terminal_text.h"
#include "client/text_table.h"

namespace quire {
namespace {

std::string RenderIds(const v1::TokenizeResponse& response) {
  std::string line;
  for (const int32_t id : response.token_ids()) {
    line += (line.empty() ? "" : " ") + std::to_string(id);
  }
  return line + "\n";
}

std::string RenderTokens(const v1::TokenizeResponse& response) {
  std::vector<std::vector<std::string>> rows;
  for (int i = 0; i < response.token_ids_size(); ++i) {
    const std::string text = i < response.token_texts_size() ? response.token_texts(i) : "";
    rows.push_back({std::to_string(response.token_ids(i)), "\"" + EscapeToOneLine(text) + "\""});
  }
  return RenderTable(rows, /*all_left=*/true) + FormatCount(response.token_ids_size()) + " tokens of at most " +
         FormatCount(response.max_model_len()) + "\n";
}

}  // namespace

TokenizeCommand::TokenizeCommand(CLI::App& app) : Command(&app) {
  app.add_option("TEXT", text_, "The text; - reads standard input")->required();
  app.add_option("--model", model_, "Name of the model; default: the only one")->type_name("NAME");
  app.add_flag("--chat", chat_, "As a user's message, rendered with the model's chat template");
  app.add_flag("--parse-special", parse_special_, "The text of a special token becomes that token");
  app.add_flag("--ids", ids_only_, "Print the ids alone, on one line");
}

ExitCode TokenizeCommand::Run(CommandContext& context) {
  std::string text;
  if (const ExitCode code = ReadPrompt(text_, context, text); code != ExitCode::kOk) {
    return code;
  }
  if (const ExitCode code = Connect(context); code != ExitCode::kOk) {
    return code;
  }
  v1::TokenizeRequest request;
  request.set_model(model_);
  request.set_parse_special(parse_special_);
  if (chat_) {
    v1::ChatMessage& message = *request.mutable_chat()->add_messages();
    message.set_role("user");
    message.set_content(text);
  } else {
    request.set_text(text);
  }
  v1::TokenizeResponse response;
  const grpc::Status status = context.client.Tokenize(request, response, context.cancel);
  if (!status.ok()) {
    return ReportFailure(status, context);
  }
  if (context.json) {
    PrintJson(MessageJson(response), context);
  } else {
    context.console.out << (ids_only_ ? RenderIds(response) : RenderTokens(response));
  }
  return ExitCode::kOk;
}

}  // namespace quire
