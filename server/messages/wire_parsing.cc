#include "server/messages/wire_parsing.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/message.h>
#include <google/protobuf/stubs/logging.h>
#include <google/protobuf/wire_format_lite.h>

#include <cstdint>
#include <map>

#include "engine/base/status.h"
#include "engine/text/utf8.h"

namespace quire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::internal::WireFormatLite;

// Far more than any request that a model takes.
constexpr int64_t kMaxFields = 1 << 16;

bool IsGroupMark(WireFormatLite::WireType type) {
  return type == WireFormatLite::WIRETYPE_START_GROUP || type == WireFormatLite::WIRETYPE_END_GROUP;
}

// Calls `visit` for each field of serialized `bytes`, null if `type` does not know it, with its value if that has a
// length; until it says false, or the bytes are broken. Messages nest as deep as their types do, and no type of the API
// contains itself; groups, which none has, may: what is in one counts as if it stood beside it.
template <typename Visit>
void ForEachField(const google::protobuf::Descriptor& type, std::string_view bytes, const Visit& visit) {
  google::protobuf::io::CodedInputStream input(reinterpret_cast<const uint8_t*>(bytes.data()),
                                               static_cast<int>(bytes.size()));
  while (const uint32_t tag = input.ReadTag()) {
    std::string_view value;
    const auto type_on_wire = WireFormatLite::GetTagWireType(tag);
    if (type_on_wire == WireFormatLite::WIRETYPE_LENGTH_DELIMITED) {
      uint32_t size = 0;
      if (!input.ReadVarint32(&size)) return;
      const auto begin = static_cast<size_t>(input.CurrentPosition());
      if (size > bytes.size() - begin || !input.Skip(static_cast<int>(size))) return;
      value = bytes.substr(begin, size);
    } else if (!IsGroupMark(type_on_wire) && !WireFormatLite::SkipField(&input, tag)) {
      return;
    }
    if (!visit(type.FindFieldByNumber(WireFormatLite::GetTagFieldNumber(tag)), value)) return;
  }
}

bool IsValidUtf8(std::string_view text) { return Utf8ValidPrefix(text) == text.size(); }

std::string PathBelow(const FieldDescriptor& field, std::string_view bytes) {
  const std::string path = FindInvalidUtf8(*field.message_type(), bytes);
  return path.empty() ? path : StrCat(field.name(), ".", path);
}

}  // namespace

std::string FindInvalidUtf8(const google::protobuf::Descriptor& type, std::string_view bytes) {
  std::string path;
  ForEachField(type, bytes, [&path](const FieldDescriptor* field, std::string_view value) {
    if (field == nullptr) return true;
    if (field->type() == FieldDescriptor::TYPE_STRING && !IsValidUtf8(value)) path = field->name();
    if (field->type() == FieldDescriptor::TYPE_MESSAGE) path = PathBelow(*field, value);
    return path.empty();
  });
  return path;
}

int64_t CountFields(const google::protobuf::Descriptor& type, std::string_view bytes) {
  int64_t count = 0;
  ForEachField(type, bytes, [&count](const FieldDescriptor* field, std::string_view value) {
    ++count;
    const bool has_fields = field != nullptr && field->type() == FieldDescriptor::TYPE_MESSAGE;
    if (has_fields) count += CountFields(*field->message_type(), value);
    return true;
  });
  return count;
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
  const int64_t num_fields = CountFields(*message->GetDescriptor(), bytes);
  if (num_fields > kMaxFields) {
    return InvalidArgument("request", StrCat(num_fields, " fields"), StrCat("at most ", kMaxFields));
  }
  // Looked for before parsing, because protobuf writes to the log when a string is broken.
  const std::string path = FindInvalidUtf8(*message->GetDescriptor(), bytes);
  if (!path.empty()) return InvalidArgument(path, "bytes that are not UTF-8", "valid UTF-8");
  const std::string conflict = FindOneofConflict(*message->GetDescriptor(), bytes);
  if (!conflict.empty()) return InvalidArgument("input", conflict, "exactly one of them");
  // It also does when a message that is cut short seems to hold one.
  const google::protobuf::LogSilencer no_log;
  if (message->ParseFromString(bytes)) return absl::OkStatus();
  return InvalidArgument("request", StrCat(bytes.size(), " bytes that can't be parsed"),
                         StrCat("a serialized ", message->GetTypeName()));
}

}  // namespace quire
