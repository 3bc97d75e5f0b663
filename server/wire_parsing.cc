#include "server/wire_parsing.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>
#include <map>

#include "engine/base/status.h"
#include "engine/text/utf8.h"

namespace quire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

bool IsValidUtf8(std::string_view text) { return Utf8ValidPrefix(text) == text.size(); }

std::string PathBelow(const FieldDescriptor& field, std::string_view bytes) {
  const std::string path = FindInvalidUtf8(*field.message_type(), bytes);
  return path.empty() ? path : StrCat(field.name(), ".", path);
}

}  // namespace

std::string FindInvalidUtf8(const google::protobuf::Descriptor& type, std::string_view bytes) {
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  while (const uint32_t tag = input.ReadTag()) {
    const FieldDescriptor* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    if (WireFormatLite::GetTagWireType(tag) != WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      if (!WireFormatLite::SkipField(&input, tag)) return "";
      continue;
    }
    std::string value;
    uint32_t size = 0;
    if (!input.ReadVarint32(&size) || !input.ReadString(&value, static_cast<int>(size))) return "";
    if (field == nullptr) continue;
    if (field->type() == FieldDescriptor::TYPE_STRING && !IsValidUtf8(value)) return field->name();
    // Messages nest as deep as their types do, and no type of quire contains itself.
    if (field->type() != FieldDescriptor::TYPE_MESSAGE) continue;
    if (std::string path = PathBelow(*field, value); !path.empty()) return path;
  }
  return "";
}

std::string FindOneofConflict(const google::protobuf::Descriptor& type, std::string_view bytes) {
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  std::map<const google::protobuf::OneofDescriptor*, const FieldDescriptor*> members;
  while (const uint32_t tag = input.ReadTag()) {
    const FieldDescriptor* field = type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag));
    if (!WireFormatLite::SkipField(&input, tag)) return "";
    if (field == nullptr || field->real_containing_oneof() == nullptr) continue;
    const FieldDescriptor* first = members.try_emplace(field->real_containing_oneof(), field).first->second;
    if (first != field) return StrCat(first->name(), " and ", field->name());
  }
  return "";
}

absl::Status ParseMessage(const std::string& bytes, google::protobuf::Message* message) {
  // Looked for before parsing, because protobuf writes to the log when a string is broken.
  const std::string path = FindInvalidUtf8(*message->GetDescriptor(), bytes);
  if (!path.empty()) return InvalidArgument(path, "bytes that are not UTF-8", "valid UTF-8");
  const std::string conflict = FindOneofConflict(*message->GetDescriptor(), bytes);
  if (!conflict.empty()) return InvalidArgument("input", conflict, "exactly one of them");
  if (message->ParseFromString(bytes)) return absl::OkStatus();
  return InvalidArgument("request", StrCat(bytes.size(), " bytes that can't be parsed"),
                         StrCat("a serialized ", message->GetTypeName()));
}

}  // namespace quire
