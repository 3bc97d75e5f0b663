#include "client/info_command.h"

#include <ostream>
#include <vector>

#include "client/failure.h"
#include "client/number_format.h"
#include "client/terminal_text.h"
#include "client/text_table.h"

namespace quire {
namespace {

std::string RenderInfo(const v1::ModelInfo& info) {
  std::string end_ids;
  for (const int32_t id : info.end_of_generation_ids()) {
    end_ids += (end_ids.empty() ? "" : ", ") + std::to_string(id);
  }
  std::string compute_type = EscapeToOneLine(info.compute_type());
  if (!info.compute_type_reason().empty()) {
    compute_type += " (" + EscapeToOneLine(info.compute_type_reason()) + ")";
  }
  const std::vector<std::vector<std::string>> rows = {
      {"architecture", EscapeToOneLine(info.architecture())},
      {"parameters", FormatCount(info.num_parameters())},
      {"layers", FormatCount(info.num_layers())},
      {"hidden size", FormatCount(info.hidden_size())},
      {"intermediate size", FormatCount(info.intermediate_size())},
      {"heads", FormatCount(info.num_heads()) + " of " + FormatCount(info.head_dim()) + ", " +
                    FormatCount(info.num_kv_heads()) + " for keys and values"},
      {"vocabulary", FormatCount(info.vocab_size()) + " tokens"},
      {"trained length", FormatCount(info.context_length()) + " tokens"},
      {"served length", FormatCount(info.max_model_len()) + " tokens"},
      {"weights", EscapeToOneLine(info.weight_type())},
      {"compute", compute_type},
      {"KV cache", EscapeToOneLine(info.kv_cache_type())},
      {"threads", FormatCount(info.num_threads())},
      {"chat template", info.has_chat_template() ? "yes" : "no"},
      {"end tokens", end_ids},
      {"server", EscapeToOneLine(info.server_version())}};
  return EscapeToOneLine(info.name()) + "\n" + RenderTable(rows, /*all_left=*/true);
}

}  // namespace

InfoCommand::InfoCommand(CLI::App& app) : Command(&app) {
  app.add_option("--model", model_, "Only this model")->type_name("NAME");
}

ExitCode InfoCommand::Run(CommandContext& context) {
  if (const ExitCode code = Connect(context); code != ExitCode::kOk) {
    return code;
  }
  v1::ListModelsResponse response;
  const grpc::Status status = model_.empty()
                                  ? context.client.ListModels(response, context.cancel)
                                  : context.client.GetModelInfo(model_, *response.add_models(), context.cancel);
  if (!status.ok()) {
    return ReportFailure(status, context);
  }
  if (context.json) {
    PrintJson(MessageJson(response), context);
    return ExitCode::kOk;
  }
  for (const auto& info : response.models()) {
    context.console.out << RenderInfo(info);
  }
  return ExitCode::kOk;
}

}  // namespace quire
