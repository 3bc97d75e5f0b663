#pragma once

#include <spdlog/spdlog.h>

#include <string_view>
#include <utility>

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

// Sends the log to standard error at `level`: debug, info, warning, error or off.
// InvalidArgument for another word.
absl::Status Configure(std::string_view level);

// The same from now on, whoever logs meanwhile.
absl::Status SetLevel(std::string_view level);

void Flush();

}  // namespace quire::log
