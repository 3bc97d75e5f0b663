#pragma once

#include <grpcpp/support/byte_buffer.h>
#include <grpcpp/support/server_callback.h>

#include "absl/status/status.h"
#include "server/grpc/grpc_call.h"
#include "server/grpc/raw_messages.h"
#include "server/grpc/status_translation.h"
#include "server/security/authenticator.h"

namespace quire {

// Unary calls that are answered at once. `handle` is a function (const Request&, Response*) -> absl::Status.
template <typename Request, typename Response, typename Handle>
absl::Status AnswerWith(const Request& request, const Handle& handle, grpc::ByteBuffer* buffer) {
  Response response;
  const absl::Status status = handle(request, &response);
  if (status.ok()) *buffer = ToByteBuffer(response);
  return status;
}

// Answers on gRPC's thread; to anyone if `authenticator` is null.
template <typename Request, typename Response, typename Handle>
grpc::ServerUnaryReactor* AnswerHere(Authenticator* authenticator, grpc::CallbackServerContext* context,
                                     const grpc::ByteBuffer& bytes, grpc::ByteBuffer* buffer, const Handle& handle) {
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  Request request;
  absl::Status status;
  if (authenticator != nullptr) status = authenticator->Authenticate(OriginOf(*context)).status();
  if (status.ok()) status = ParseMessage(bytes, &request);
  if (status.ok()) status = AnswerWith<Request, Response>(request, handle, buffer);
  reactor->Finish(ToGrpcStatus(status));
  return reactor;
}

}  // namespace quire
