#include "server/config/setting_kinds.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "engine/base/status.h"
#include "server/shown_json.h"

namespace quire {
namespace {

using Json = nlohmann::json;
using Getter = std::function<Json(const ServerConfig&)>;
using Setter = std::function<absl::Status(const Json&, ServerConfig*)>;

constexpr std::string_view kAuto = "auto";

template <typename T>
const T& Read(const Field<T>& field, const ServerConfig& config) {
  return field(const_cast<ServerConfig&>(config));  // only read
}

Getter GetOrAuto(Field<std::optional<int64_t>> field) {
  return [field](const ServerConfig& config) {
    const std::optional<int64_t>& value = Read(field, config);
    return value ? Json(*value) : Json(kAuto);
  };
}

// What a unit multiplies by; 0 for no unit.
double UnitBytes(std::string_view unit) {
  if (unit.empty() || unit == "B") return 1;
  if (unit == "KiB") return 1024.0;
  if (unit == "MiB") return 1024.0 * 1024;
  if (unit == "GiB") return 1024.0 * 1024 * 1024;
  if (unit == "TiB") return 1024.0 * 1024 * 1024 * 1024;
  return 0;
}

absl::StatusOr<int64_t> BytesOf(const std::string& name, const Json& value, std::string_view prefix) {
  const std::string text = value.is_string() ? value.get<std::string>() : ShownJson(value);
  const size_t number_end = text.find_first_not_of("0123456789.");
  const std::string number = text.substr(0, number_end);
  const std::string unit = number_end == std::string::npos ? "" : text.substr(number_end);
  double count = 0;
  const bool is_number = absl::SimpleAtod(number, &count);
  const double bytes = count * UnitBytes(unit);
  if (!is_number || !(bytes >= 1 && bytes < 0x1p62)) {
    return InvalidArgument(name, StrCat("\"", text, "\""),
                           StrCat(std::string(prefix), "a positive number of bytes, or one with KiB, MiB, GiB or TiB"));
  }
  return static_cast<int64_t>(bytes);
}

}  // namespace

absl::StatusOr<int64_t> IntegerIn(const std::string& name, const Json& value, int64_t min, int64_t max,
                                  std::string_view prefix) {
  const std::string accepted = StrCat(std::string(prefix), "an integer in [", min, ", ", max, "]");
  if (!value.is_number_integer()) return InvalidArgument(name, ShownJson(value), accepted);
  // JSON integers above int64's range are kept unsigned, and would come out negative.
  const bool too_large = value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(max);
  if (too_large || value.get<int64_t>() < min || value.get<int64_t>() > max) {
    return InvalidArgument(name, ShownJson(value), accepted);
  }
  return value.get<int64_t>();
}

ServerSetting TextSetting(std::string name, std::string value_name, std::string help, Field<std::string> field,
                          std::function<absl::Status(const std::string&)> check) {
  Setter set = [name, field, check](const Json& value, ServerConfig* config) {
    if (!value.is_string()) return InvalidArgument(name, ShownJson(value), "a string");
    if (check) QUIRE_RETURN_IF_ERROR(check(value.get<std::string>()));
    field(*config) = value.get<std::string>();
    return absl::OkStatus();
  };
  Getter get = [field](const ServerConfig& config) { return Json(Read(field, config)); };
  return {std::move(name), std::move(value_name), std::move(help), std::move(set), std::move(get)};
}

ServerSetting ChoiceSetting(std::string name, std::vector<std::string> choices, std::string help,
                            Field<std::string> field) {
  std::string all;
  for (const std::string& choice : choices) all += (all.empty() ? "" : "|") + choice;
  auto check = [name, choices, all](const std::string& value) {
    for (const std::string& choice : choices) {
      if (value == choice) return absl::OkStatus();
    }
    return InvalidArgument(name, StrCat("\"", value, "\""), all);
  };
  return TextSetting(std::move(name), all, std::move(help), std::move(field), std::move(check));
}

ServerSetting IntegerSetting(std::string name, std::string help, int64_t min, int64_t max, Field<int64_t> field) {
  Setter set = [name, min, max, field](const Json& value, ServerConfig* config) {
    QUIRE_ASSIGN_OR_RETURN(field(*config), IntegerIn(name, value, min, max, ""));
    return absl::OkStatus();
  };
  Getter get = [field](const ServerConfig& config) { return Json(Read(field, config)); };
  return {std::move(name), "N", std::move(help), std::move(set), std::move(get)};
}

ServerSetting IntegerOrAutoSetting(std::string name, std::string help, int64_t min, int64_t max,
                                   Field<std::optional<int64_t>> field) {
  Setter set = [name, min, max, field](const Json& value, ServerConfig* config) {
    std::optional<int64_t> number;
    if (value != kAuto) {
      QUIRE_ASSIGN_OR_RETURN(number, IntegerIn(name, value, min, max, "auto or "));
    }
    field(*config) = number;
    return absl::OkStatus();
  };
  Getter get = GetOrAuto(field);
  return {std::move(name), "auto|N", std::move(help), std::move(set), std::move(get)};
}

ServerSetting BytesSetting(std::string name, std::string help, Field<int64_t> field) {
  Setter set = [name, field](const Json& value, ServerConfig* config) {
    QUIRE_ASSIGN_OR_RETURN(field(*config), BytesOf(name, value, ""));
    return absl::OkStatus();
  };
  Getter get = [field](const ServerConfig& config) { return Json(Read(field, config)); };
  return {std::move(name), "BYTES", std::move(help), std::move(set), std::move(get)};
}

ServerSetting BytesOrAutoSetting(std::string name, std::string help, Field<std::optional<int64_t>> field) {
  Setter set = [name, field](const Json& value, ServerConfig* config) {
    std::optional<int64_t> bytes;
    if (value != kAuto) {
      QUIRE_ASSIGN_OR_RETURN(bytes, BytesOf(name, value, "auto, "));
    }
    field(*config) = bytes;
    return absl::OkStatus();
  };
  Getter get = GetOrAuto(field);
  return {std::move(name), "auto|BYTES", std::move(help), std::move(set), std::move(get)};
}

ServerSetting NumberSetting(std::string name, std::string unit, std::string help, double min, double max,
                            Field<double> field) {
  Setter set = [name, min, max, field](const Json& value, ServerConfig* config) {
    // Written so that NaN fails it.
    if (!value.is_number() || !(value.get<double>() >= min && value.get<double>() <= max)) {
      return InvalidArgument(name, ShownJson(value), StrCat("a number in [", min, ", ", max, "]"));
    }
    field(*config) = value.get<double>();
    return absl::OkStatus();
  };
  Getter get = [field](const ServerConfig& config) { return Json(Read(field, config)); };
  return {std::move(name), std::move(unit), std::move(help), std::move(set), std::move(get)};
}

ServerSetting SwitchSetting(std::string name, std::string help, Field<bool> field) {
  Setter set = [name, field](const Json& value, ServerConfig* config) {
    if (!value.is_boolean()) return InvalidArgument(name, ShownJson(value), "true or false");
    field(*config) = value.get<bool>();
    return absl::OkStatus();
  };
  Getter get = [field](const ServerConfig& config) { return Json(Read(field, config)); };
  return {std::move(name), "", std::move(help), std::move(set), std::move(get)};
}

}  // namespace quire
