#pragma once

#include <grpcpp/support/server_callback.h>

#include "server/security/authenticator.h"

namespace quire {

// What a gRPC call says of itself. It must outlive the origin.
CallOrigin OriginOf(const grpc::CallbackServerContext& context);

}  // namespace quire
