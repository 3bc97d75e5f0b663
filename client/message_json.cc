#include "client/message_json.h"

#include <cctype>

namespace quire {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

// FINISH_REASON_STOP_TOKEN of enum FinishReason becomes "stop_token".
std::string EnumName(const EnumValueDescriptor& value) {
  std::string prefix;
  for (const char letter : value.type()->name()) {
    if (std::isupper(static_cast<unsigned char>(letter)) != 0 && !prefix.empty()) {
      prefix += '_';
    }
    prefix += static_cast<char>(std::toupper(static_cast<unsigned char>(letter)));
  }
  prefix += '_';
  std::string name = value.name();
  if (name.compare(0, prefix.size(), prefix) == 0) {
    name.erase(0, prefix.size());
  }
  for (char& letter : name) {
    letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  }
  return name;
}

Json SingleValue(const Message& message, const FieldDescriptor& field) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: return reflection.GetInt32(message, &field);
    case FieldDescriptor::CPPTYPE_INT64: return reflection.GetInt64(message, &field);
    case FieldDescriptor::CPPTYPE_UINT32: return reflection.GetUInt32(message, &field);
    case FieldDescriptor::CPPTYPE_UINT64: return reflection.GetUInt64(message, &field);
    case FieldDescriptor::CPPTYPE_DOUBLE: return reflection.GetDouble(message, &field);
    case FieldDescriptor::CPPTYPE_FLOAT: return reflection.GetFloat(message, &field);
    case FieldDescriptor::CPPTYPE_BOOL: return reflection.GetBool(message, &field);
    case FieldDescriptor::CPPTYPE_ENUM: return EnumName(*reflection.GetEnum(message, &field));
    case FieldDescriptor::CPPTYPE_STRING: return reflection.GetString(message, &field);
    case FieldDescriptor::CPPTYPE_MESSAGE: return MessageJson(reflection.GetMessage(message, &field));
  }
  return nullptr;
}

Json RepeatedValue(const Message& message, const FieldDescriptor& field, int i) {
  const auto& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: return reflection.GetRepeatedInt32(message, &field, i);
    case FieldDescriptor::CPPTYPE_INT64: return reflection.GetRepeatedInt64(message, &field, i);
    case FieldDescriptor::CPPTYPE_UINT32: return reflection.GetRepeatedUInt32(message, &field, i);
    case FieldDescriptor::CPPTYPE_UINT64: return reflection.GetRepeatedUInt64(message, &field, i);
    case FieldDescriptor::CPPTYPE_DOUBLE: return reflection.GetRepeatedDouble(message, &field, i);
    case FieldDescriptor::CPPTYPE_FLOAT: return reflection.GetRepeatedFloat(message, &field, i);
    case FieldDescriptor::CPPTYPE_BOOL: return reflection.GetRepeatedBool(message, &field, i);
    case FieldDescriptor::CPPTYPE_ENUM: return EnumName(*reflection.GetRepeatedEnum(message, &field, i));
    case FieldDescriptor::CPPTYPE_STRING: return reflection.GetRepeatedString(message, &field, i);
    case FieldDescriptor::CPPTYPE_MESSAGE: return MessageJson(reflection.GetRepeatedMessage(message, &field, i));
  }
  return nullptr;
}

}  // namespace

Json MessageJson(const Message& message) {
  const auto& reflection = *message.GetReflection();
  const auto& descriptor = *message.GetDescriptor();
  Json json = Json::object();
  for (int f = 0; f < descriptor.field_count(); ++f) {
    const FieldDescriptor& field = *descriptor.field(f);
    if (field.is_repeated()) {
      Json& values = json[field.name()] = Json::array();
      for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
        values.push_back(RepeatedValue(message, field, i));
      }
    } else if (!field.has_presence() || reflection.HasField(message, &field)) {
      json[field.name()] = SingleValue(message, field);
    }
  }
  return json;
}

std::string JsonLine(const Json& json, bool ascii_only) {
  return json.dump(-1, ' ', ascii_only, Json::error_handler_t::replace) + "\n";
}

}  // namespace quire
