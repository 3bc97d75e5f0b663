#include "client/detokenize_command.h"

#include <ostream>

#include "client/failure.h"

namespace quire {

DetokenizeCommand::DetokenizeCommand(CLI::App& app) : Command(&app) {
  app.add_option("IDS", token_ids_, "Token ids")->required();
  app.add_option("--model", model_, "Name of the model; default: the only one")->type_name("NAME");
  app.add_flag("--special", special_tokens_, "Show special tokens in the text");
}

ExitCode DetokenizeCommand::Run(CommandContext& context) {
  if (const ExitCode code = Connect(context); code != ExitCode::kOk) {
    return code;
  }
  v1::DetokenizeRequest request;
  request.set_model(model_);
  request.mutable_token_ids()->Assign(token_ids_.begin(), token_ids_.end());
  request.set_include_special_tokens(special_tokens_);
  v1::DetokenizeResponse response;
  const grpc::Status status = context.client.Detokenize(request, response, context.cancel);
  if (!status.ok()) {
    return ReportFailure(status, context);
  }
  if (context.json) {
    PrintJson(MessageJson(response), context);
  } else {
    context.console.out << ForOutput(response.text(), context) << "\n";
  }
  return ExitCode::kOk;
}

}  // namespace quire
