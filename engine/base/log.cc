#include "engine/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <memory>
#include <string>

#include "engine/base/status.h"

namespace quire::log {

namespace {

absl::StatusOr<spdlog::level::level_enum> ParseLevel(std::string_view level) {
  const auto parsed = spdlog::level::from_str(std::string(level));
  if (parsed != spdlog::level::off || level == "off") return parsed;
  return InvalidArgument("log_level", level, "debug, info, warning, error or off");
}

}  // namespace

absl::Status Configure(std::string_view level) {
  QUIRE_ASSIGN_OR_RETURN(const auto parsed, ParseLevel(level));
  auto logger = std::make_shared<spdlog::logger>("quire", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  logger->set_level(parsed);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

absl::Status SetLevel(std::string_view level) {
  QUIRE_ASSIGN_OR_RETURN(const auto parsed, ParseLevel(level));
  spdlog::default_logger()->set_level(parsed);
  return absl::OkStatus();
}

void Flush() { spdlog::default_logger()->flush(); }

}  // namespace quire::log
