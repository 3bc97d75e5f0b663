#pragma once

#include <grpcpp/support/status.h>

#include <string>
#include <string_view>

#include "client/command.h"

namespace quire {

// "INVALID_ARGUMENT".
std::string_view CodeName(grpc::StatusCode code);

// {"code", "message"} and, if the server names a wait, "retry_after_seconds".
Json FailureJson(const grpc::Status& status);

// The exit code that a failed call ends the process with.
ExitCode ExitCodeOf(const grpc::Status& status, const CancelSignal& cancel);

// Tells the failure of a call: a line on standard error, or {"error": ...} on standard output with --json.
ExitCode ReportFailure(const grpc::Status& status, const CommandContext& context);

// Tells why the arguments or files cannot be used. Returns kUsage.
ExitCode ReportUsage(std::string_view message, const CommandContext& context);

// Waits until the server answers; otherwise reports and returns why not.
ExitCode Connect(CommandContext& context);

}  // namespace quire
