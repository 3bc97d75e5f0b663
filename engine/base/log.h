#pragma once

#include <spdlog/spdlog.h>

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "absl/status/status.h"

// The only door to the log. Messages go to standard error; formats are {fmt}'s.
namespace quire::log {

template <typename... Args>
void Debug(spdlog::format_string_t<Args...> format, Args&&... args) {
  spdlog::debug(format, std::forward<Args>(args)...);
}

template <typename... Args>
void Info(spdlog::format_string_t<Args...> format, Args&&... args) {
  spdlog::info(format, std::forward<Args>(args)...);
}

template <typename... Args>
void Warning(spdlog::format_string_t<Args...> format, Args&&... args) {
  spdlog::warn(format, std::forward<Args>(args)...);
}

template <typename... Args>
void Error(spdlog::format_string_t<Args...> format, Args&&... args) {
  spdlog::error(format, std::forward<Args>(args)...);
}

// A figure of an event.
struct Field {
  std::string_view name;
  std::variant<std::string, int64_t, double> value;
};

// An event that programs read, at level info: `text` for people, or in JSON `event` and a member for each field.
void Event(std::string_view event, const std::string& text, std::initializer_list<Field> fields);

// Sends the log to standard error at `level`: debug, info, warning, error or off; as lines of text, or with format
// "json" as a JSON object a line: "time" (UTC), "level", "message". InvalidArgument for another word.
absl::Status Configure(std::string_view level, std::string_view format = "text");

// The level from now on, whoever logs meanwhile.
absl::Status SetLevel(std::string_view level);

void Flush();

}  // namespace quire::log
