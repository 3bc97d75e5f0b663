#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/byte_buffer.h>

#include "absl/status/status.h"

namespace quire {

// Between gRPC's raw buffers and messages: methods that take text are served raw, so that what can't be parsed is
// answered by name (see wire_parsing.h).
absl::Status ParseMessage(const grpc::ByteBuffer& buffer, google::protobuf::Message* message);
grpc::ByteBuffer ToByteBuffer(const google::protobuf::Message& message);

}  // namespace quire
