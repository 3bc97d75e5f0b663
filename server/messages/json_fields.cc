#include "server/messages/json_fields.h"

#include <cstddef>
#include <limits>
#include <utility>

#include "engine/base/status.h"
#include "server/shown_json.h"

namespace quire {
namespace {

using Json = nlohmann::json;

constexpr int64_t kMaxDepth = 64;

// Counts values and depth without keeping any.
class ShapeCheck : public nlohmann::json_sax<Json> {
 public:
  explicit ShapeCheck(int64_t max_values) : max_values_(max_values) {}

  const absl::Status& status() const { return status_; }

  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(number_integer_t) override { return Count(); }
  bool number_unsigned(number_unsigned_t) override { return Count(); }
  bool number_float(number_float_t, const string_t&) override { return Count(); }
  bool string(string_t&) override { return Count(); }
  bool binary(binary_t&) override { return Count(); }
  bool key(string_t&) override { return true; }
  bool start_object(std::size_t) override { return Open(); }
  bool end_object() override { return Close(); }
  bool start_array(std::size_t) override { return Open(); }
  bool end_array() override { return Close(); }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& error) override {
    status_ = InvalidArgument("body", std::string_view(error.what()), "a JSON object");
    return false;
  }

 private:
  bool Count() {
    if (++num_values_ <= max_values_) return true;
    status_ = InvalidArgument("body", StrCat("more than ", max_values_, " values"),
                              StrCat("at most ", max_values_, ": more fit no request to this model"));
    return false;
  }
  bool Open() {
    if (++depth_ <= kMaxDepth) return Count();
    status_ = InvalidArgument("body", StrCat("values nested ", depth_, " deep"), StrCat("at most ", kMaxDepth));
    return false;
  }
  bool Close() {
    --depth_;
    return true;
  }

  const int64_t max_values_;
  int64_t num_values_ = 0;
  int64_t depth_ = 0;
  absl::Status status_;
};

}  // namespace

absl::StatusOr<Json> ParseJsonObject(std::string_view text, int64_t max_values) {
  ShapeCheck check(max_values);
  if (!Json::sax_parse(text, &check)) return check.status();
  Json json = Json::parse(text);
  if (!json.is_object()) return InvalidArgument("body", std::string_view(json.type_name()), "a JSON object");
  return json;
}

absl::StatusOr<int64_t> ReadInteger(const std::string& field, const Json& value, int64_t least, int64_t most) {
  const bool fits = value.is_number_integer() &&
                    !(value.is_number_unsigned() && value.get<uint64_t>() > uint64_t{INT64_MAX}) &&
                    value.get<int64_t>() >= least && value.get<int64_t>() <= most;
  if (fits) return value.get<int64_t>();
  const std::string accepted = most == std::numeric_limits<int64_t>::max()
                                   ? StrCat("an integer >= ", least)
                                   : StrCat("an integer in [", least, ", ", most, "]");
  return InvalidArgument(field, std::string_view(ShownJson(value)), accepted);
}

absl::StatusOr<std::vector<TokenId>> ReadTokenIds(const std::string& field, const Json& ids) {
  if (!ids.is_array()) return InvalidArgument(field, std::string_view(ids.type_name()), "an array of token ids");
  std::vector<TokenId> result;
  result.reserve(ids.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    QUIRE_ASSIGN_OR_RETURN(const int64_t id,
                           ReadInteger(StrCat(field, "[", i, "]"), ids[i], 0, std::numeric_limits<TokenId>::max()));
    result.push_back(static_cast<TokenId>(id));
  }
  return result;
}

JsonFields::JsonFields(const Json& object, std::string path) : object_(object), path_(std::move(path)) {
  if (!object_.is_object()) {
    // The path ends with a dot.
    Fail(InvalidArgument(path_.substr(0, path_.size() - 1), std::string_view(ShownJson(object_)), "an object"));
  }
}

void JsonFields::Read(const std::string& name, bool* target) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_boolean()) return Refuse(name, *value, "true or false");
  *target = value->get<bool>();
}

void JsonFields::Read(const std::string& name, std::string* target) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_string()) return Refuse(name, *value, "a string");
  *target = value->get<std::string>();
}

void JsonFields::Read(const std::string& name, float* target) {
  std::optional<double> number;
  Read(name, &number);
  if (number) *target = static_cast<float>(*number);
}

void JsonFields::Read(const std::string& name, std::optional<double>* target) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  if (!value->is_number()) return Refuse(name, *value, "a number");
  *target = value->get<double>();
}

void JsonFields::Read(const std::string& name, std::vector<std::string>* target) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  const Json list = value->is_array() ? *value : Json::array({*value});
  for (const Json& item : list) {
    if (!item.is_string()) return Refuse(name, *value, "a string or an array of strings");
    target->push_back(item.get<std::string>());
  }
}

void JsonFields::Read(const std::string& name, int64_t least, int64_t most, int64_t* target) {
  std::optional<int64_t> value;
  Read(name, least, most, &value);
  if (value) *target = *value;
}

void JsonFields::Read(const std::string& name, int64_t least, int64_t most, std::optional<int64_t>* target) {
  const Json* value = Find(name);
  if (value == nullptr) return;
  const absl::StatusOr<int64_t> number = ReadInteger(path_ + name, *value, least, most);
  if (!number.ok()) return Fail(number.status());
  *target = *number;
}

void JsonFields::Read(const std::string& name, int64_t least, int64_t most, int32_t* target) {
  std::optional<int64_t> value;
  Read(name, least, most, &value);
  if (value) *target = static_cast<int32_t>(*value);
}

const Json* JsonFields::Find(const std::string& name) {
  known_.insert(name);
  if (!status_.ok()) return nullptr;
  const auto found = object_.find(name);
  return found == object_.end() || found->is_null() ? nullptr : &*found;
}

void JsonFields::Fail(const absl::Status& status) {
  if (status_.ok()) status_ = status;
}

void JsonFields::Ignore(std::initializer_list<const char*> names) { known_.insert(names.begin(), names.end()); }

void JsonFields::Expect(const std::string& name, const Json& value) {
  const Json* found = Find(name);
  if (found != nullptr && *found != value)
    Refuse(name, *found, StrCat(ShownJson(value), ", or nothing: not supported"));
}

absl::Status JsonFields::Finish() const {
  if (!status_.ok()) return status_;
  for (const auto& [name, value] : object_.items()) {
    if (known_.contains(name)) continue;
    return InvalidArgument(path_ + name, std::string_view(ShownJson(value)),
                           "nothing: there is no such parameter here");
  }
  return absl::OkStatus();
}

void JsonFields::Refuse(const std::string& name, const Json& value, std::string_view accepted) {
  Fail(InvalidArgument(path_ + name, std::string_view(ShownJson(value)), accepted));
}

}  // namespace quire
