#include "client/health_command.h"

#include <ostream>

#include "client/failure.h"

namespace quire {

ExitCode HealthCommand::Run(CommandContext& context) {
  using grpc::health::v1::HealthCheckResponse;
  if (const ExitCode code = Connect(context); code != ExitCode::kOk) {
    return code;
  }
  HealthCheckResponse response;
  const grpc::Status status = context.client.CheckHealth(response, context.cancel);
  if (!status.ok()) {
    return ReportFailure(status, context);
  }
  std::string name = HealthCheckResponse::ServingStatus_Name(response.status());
  if (name.empty()) {
    name = "UNKNOWN";  // a value that this client does not know
  }
  if (context.json) {
    PrintJson(Json{{"status", name}}, context);
  } else {
    context.console.out << name << "\n";
  }
  return response.status() == HealthCheckResponse::SERVING ? ExitCode::kOk : ExitCode::kFailed;
}

}  // namespace quire
