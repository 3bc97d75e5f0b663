#pragma once

#include <grpcpp/support/status.h>

#include "absl/status/status.h"

namespace quire {

// The engine's status as gRPC's, with machine-readable details in google.rpc.Status: BadRequest for a field, RetryInfo
// for a delay, and an ErrorInfo of domain "quire" with the status's ReasonOf.
grpc::Status ToGrpcStatus(const absl::Status& status);

}  // namespace quire
