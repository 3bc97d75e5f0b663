#include "server/grpc/raw_messages.h"

#include <string>

#include "server/messages/wire_parsing.h"

namespace quire {

absl::Status ParseMessage(const grpc::ByteBuffer& buffer, google::protobuf::Message* message) {
  grpc::Slice slice;
  if (!buffer.DumpToSingleSlice(&slice).ok()) return absl::InternalError("the request's bytes can't be read");
  return ParseMessage(std::string(reinterpret_cast<const char*>(slice.begin()), slice.size()), message);
}

grpc::ByteBuffer ToByteBuffer(const google::protobuf::Message& message) {
  const grpc::Slice slice(message.SerializeAsString());
  return grpc::ByteBuffer(&slice, 1);
}

}  // namespace quire
