#pragma once

#include <grpcpp/support/server_callback.h>

#include <string>

#include "server/security/authenticator.h"

namespace quire {

// What a gRPC call says of itself. It must outlive the origin.
CallOrigin OriginOf(const grpc::CallbackServerContext& context);

// Tells the caller its request's id, in the call's first metadata, if it can stand there: printable ASCII.
void TellRequestId(const std::string& request_id, grpc::CallbackServerContext* context);

}  // namespace quire
