#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace google::protobuf {
class Descriptor;
class Message;
}  // namespace google::protobuf

namespace quire {

// Parses a serialized request. INVALID_ARGUMENT names the string field that is not valid UTF-8 or the two fields that
// exclude each other, or says that the bytes are no such message or one of more fields than any request needs. gRPC's
// own parsing would answer UNIMPLEMENTED without a word.
absl::Status ParseMessage(const std::string& bytes, google::protobuf::Message* message);

// The path of the first string field of serialized `bytes` that is not valid UTF-8 ("chat.messages.content"), or
// empty. Pure.
std::string FindInvalidUtf8(const google::protobuf::Descriptor& type, std::string_view bytes);

// How many fields serialized `bytes` hold at every depth, known ones and others. Parsed, each may take a hundred times
// its bytes. Pure.
int64_t CountFields(const google::protobuf::Descriptor& type, std::string_view bytes);

// Two different members of one oneof among the top-level fields of serialized `bytes` ("text and token_ids"), or empty:
// a parser would silently keep the last. Pure.
std::string FindOneofConflict(const google::protobuf::Descriptor& type, std::string_view bytes);

}  // namespace quire
