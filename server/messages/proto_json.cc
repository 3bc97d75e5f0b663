#include "server/messages/proto_json.h"

#include <google/protobuf/descriptor.h>

#include <string>

namespace quire {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using Json = nlohmann::json;

// `index` is that of a repeated field's element; ignored for others.
Json ValueOf(const Message& message, const FieldDescriptor* field, int index) {
  const google::protobuf::Reflection& get = *message.GetReflection();
  const bool repeated = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      return repeated ? get.GetRepeatedInt32(message, field, index) : get.GetInt32(message, field);
    case FieldDescriptor::CPPTYPE_INT64:
      return repeated ? get.GetRepeatedInt64(message, field, index) : get.GetInt64(message, field);
    case FieldDescriptor::CPPTYPE_UINT32:
      return repeated ? get.GetRepeatedUInt32(message, field, index) : get.GetUInt32(message, field);
    case FieldDescriptor::CPPTYPE_UINT64:
      return repeated ? get.GetRepeatedUInt64(message, field, index) : get.GetUInt64(message, field);
    case FieldDescriptor::CPPTYPE_DOUBLE:
      return repeated ? get.GetRepeatedDouble(message, field, index) : get.GetDouble(message, field);
    case FieldDescriptor::CPPTYPE_FLOAT:
      return repeated ? get.GetRepeatedFloat(message, field, index) : get.GetFloat(message, field);
    case FieldDescriptor::CPPTYPE_BOOL:
      return repeated ? get.GetRepeatedBool(message, field, index) : get.GetBool(message, field);
    case FieldDescriptor::CPPTYPE_ENUM:
      return repeated ? get.GetRepeatedEnum(message, field, index)->name() : get.GetEnum(message, field)->name();
    case FieldDescriptor::CPPTYPE_STRING:
      return repeated ? get.GetRepeatedString(message, field, index) : get.GetString(message, field);
    case FieldDescriptor::CPPTYPE_MESSAGE:
      return ToJson(repeated ? get.GetRepeatedMessage(message, field, index) : get.GetMessage(message, field));
  }
  return nullptr;
}

}  // namespace

Json ToJson(const Message& message) {
  Json object = Json::object();
  const google::protobuf::Descriptor* descriptor = message.GetDescriptor();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    Json& value = object[field->name()];
    if (!field->is_repeated()) {
      value = ValueOf(message, field, 0);
      continue;
    }
    value = Json::array();
    const int size = message.GetReflection()->FieldSize(message, field);
    for (int index = 0; index < size; ++index) value.push_back(ValueOf(message, field, index));
  }
  return object;
}

}  // namespace quire
