#include "client/failure.h"

#include <array>
#include <ostream>

#include "client/retry_policy.h"
#include "client/terminal_text.h"

namespace quire {
namespace {

void Tell(std::string_view what, const Json& error, const CommandContext& context) {
  if (context.json) {
    PrintJson(Json{{"error", error}}, context);
  } else {
    context.console.err << "quire: " << EscapeControls(what) << std::endl;
  }
}

}  // namespace

std::string_view CodeName(grpc::StatusCode code) {
  constexpr std::array<std::string_view, 17> kNames = {
      "OK",        "CANCELLED",      "UNKNOWN",           "INVALID_ARGUMENT",   "DEADLINE_EXCEEDED",
      "NOT_FOUND", "ALREADY_EXISTS", "PERMISSION_DENIED", "RESOURCE_EXHAUSTED", "FAILED_PRECONDITION",
      "ABORTED",   "OUT_OF_RANGE",   "UNIMPLEMENTED",     "INTERNAL",           "UNAVAILABLE",
      "DATA_LOSS", "UNAUTHENTICATED"};
  const auto index = static_cast<size_t>(code);
  return index < kNames.size() ? kNames[index] : "UNKNOWN";
}

Json FailureJson(const grpc::Status& status) {
  Json error = {{"code", CodeName(status.error_code())}, {"message", status.error_message()}};
  if (const auto delay = RetryInfoDelay(status)) {
    error["retry_after_seconds"] = static_cast<double>(delay->count()) / 1000.0;
  }
  return error;
}

ExitCode ExitCodeOf(const grpc::Status& status, const CancelSignal& cancel) {
  if (status.ok()) {
    return ExitCode::kOk;
  }
  if (status.error_code() == grpc::StatusCode::CANCELLED && cancel.IsCancelled()) {
    return ExitCode::kInterrupted;
  }
  return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ? ExitCode::kDeadline : ExitCode::kFailed;
}

ExitCode ReportFailure(const grpc::Status& status, const CommandContext& context) {
  const ExitCode code = ExitCodeOf(status, context.cancel);
  if (code == ExitCode::kInterrupted) {
    Tell("interrupted", {{"code", "CANCELLED"}, {"message", "interrupted"}}, context);
  } else {
    std::string what(CodeName(status.error_code()));
    what += ": " + status.error_message();
    Tell(what, FailureJson(status), context);
  }
  return code;
}

ExitCode ReportUsage(std::string_view message, const CommandContext& context) {
  Tell(message, {{"code", "USAGE"}, {"message", message}}, context);
  return ExitCode::kUsage;
}

ExitCode Connect(CommandContext& context) {
  const grpc::Status status = context.client.Connect(context.cancel);
  if (status.ok()) {
    return ExitCode::kOk;
  }
  if (context.cancel.IsCancelled()) {
    return ReportFailure(status, context);
  }
  Tell(status.error_message(), FailureJson(status), context);
  return ExitCode::kCannotConnect;
}

}  // namespace quire
