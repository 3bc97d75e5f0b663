#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "server/config/server_settings.h"

namespace quire {

// The kinds of settings: each makes a ServerSetting that checks a JSON value's type and range, and writes and reads one
// field. Errors name the setting, the value and what is accepted.

// A member of ServerConfig or of its EngineConfig.
template <typename T>
using Field = std::function<T&(ServerConfig&)>;

ServerSetting TextSetting(std::string name, std::string value_name, std::string help, Field<std::string> field,
                          std::function<absl::Status(const std::string&)> check = nullptr);
ServerSetting ChoiceSetting(std::string name, std::vector<std::string> choices, std::string help,
                            Field<std::string> field);
ServerSetting IntegerSetting(std::string name, std::string help, int64_t min, int64_t max, Field<int64_t> field);
ServerSetting IntegerOrAutoSetting(std::string name, std::string help, int64_t min, int64_t max,
                                   Field<std::optional<int64_t>> field);
// A number, or text with a unit: "2GiB".
ServerSetting BytesSetting(std::string name, std::string help, Field<int64_t> field);
ServerSetting BytesOrAutoSetting(std::string name, std::string help, Field<std::optional<int64_t>> field);
// A number in [min, max].
ServerSetting NumberSetting(std::string name, std::string unit, std::string help, double min, double max,
                            Field<double> field);
ServerSetting SwitchSetting(std::string name, std::string help, Field<bool> field);

// An integer in [min, max]; `prefix` says what else is accepted.
absl::StatusOr<int64_t> IntegerIn(const std::string& name, const nlohmann::json& value, int64_t min, int64_t max,
                                  std::string_view prefix);

}  // namespace quire
