#pragma once

#include <grpcpp/support/server_callback.h>

#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "engine/base/clock.h"
#include "server/generation/generation_call.h"
#include "server/generation/request_ids.h"
#include "server/security/authenticator.h"

namespace quire {

// What a gRPC call says of itself. It must outlive the origin.
CallOrigin OriginOf(const grpc::CallbackServerContext& context);

// What is known of a generation request before its message is read: when it came, whose it is, of which trace. The
// authenticator's error.
absl::StatusOr<GenerationInput> InputOf(const grpc::CallbackServerContext& context, Authenticator* authenticator,
                                        TimePoint now);

// The request's id: the one that its message asks for, else that of the call's metadata, else a new one, "PREFIX-...".
// The caller is told it in the call's first metadata, if it can stand there: printable ASCII.
absl::StatusOr<std::string> RequestIdOf(const std::string& asked, std::string_view prefix, RequestIds* request_ids,
                                        grpc::CallbackServerContext* context);

// The deadline that the caller has set, in the engine's time.
std::optional<TimePoint> DeadlineOf(const grpc::CallbackServerContext& context, TimePoint now);

}  // namespace quire
