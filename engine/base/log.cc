#include "engine/base/log.h"

#include <spdlog/sinks/stdout_color_sinks.h>

#include <memory>
#include <string>

#include "engine/base/status.h"

namespace quire::log {

absl::Status Configure(std::string_view level) {
  const auto parsed = spdlog::level::from_str(std::string(level));
  if (parsed == spdlog::level::off && level != "off") {
    return InvalidArgument("log_level", level, "debug, info, warning, error or off");
  }
  auto logger = std::make_shared<spdlog::logger>("quire", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  logger->set_level(parsed);
  spdlog::set_default_logger(std::move(logger));
  return absl::OkStatus();
}

void Flush() { spdlog::default_logger()->flush(); }

}  // namespace quire::log
