#include "engine/base/log.h"

#include <spdlog/formatter.h>
#include <spdlog/sinks/stdout_color_sinks.h>

#include <chrono>
#include <format>
#include <memory>
#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "engine/base/status.h"

namespace quire::log {
namespace {

// What is being logged as an event. Messages are formatted on the thread that logs them.
struct CurrentEvent {
  std::string_view name;
  std::initializer_list<Field> fields;
};
thread_local const CurrentEvent* current_event = nullptr;

class JsonFormatter : public spdlog::formatter {
 public:
  void format(const spdlog::details::log_msg& message, spdlog::memory_buf_t& line) override {
    const std::string_view text(message.payload.data(), message.payload.size());
    const auto time = std::chrono::floor<std::chrono::milliseconds>(message.time);
    nlohmann::ordered_json json = {{"time", std::format("{:%FT%T}Z", time)},
                                   {"level", spdlog::level::to_string_view(message.level).data()},
                                   {"message", current_event != nullptr ? current_event->name : text}};
    if (current_event != nullptr) {
      for (const Field& field : current_event->fields) {
        std::visit([&](const auto& value) { json[std::string(field.name)] = value; }, field.value);
      }
    }
    const std::string dumped = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
    line.append(dumped.data(), dumped.data() + dumped.size());
    line.push_back('\n');
  }

  std::unique_ptr<spdlog::formatter> clone() const override { return std::make_unique<JsonFormatter>(); }
};

absl::StatusOr<spdlog::level::level_enum> ParseLevel(std::string_view level) {
  const auto parsed = spdlog::level::from_str(std::string(level));
  if (parsed != spdlog::level::off || level == "off") return parsed;
  return InvalidArgument("log_level", level, "debug, info, warning, error or off");
}

}  // namespace

void Event(std::string_view event, const std::string& text, std::initializer_list<Field> fields) {
  const CurrentEvent current = {event, fields};
  current_event = &current;
  spdlog::default_logger_raw()->log(spdlog::level::info, text);
  current_event = nullptr;
}

absl::Status Configure(std::string_view level, std::string_view format) {
  QUIRE_ASSIGN_OR_RETURN(const auto parsed, ParseLevel(level));
  if (format != "text" && format != "json") return InvalidArgument("log_format", format, "text or json");
  auto logger = std::make_shared<spdlog::logger>("quire", std::make_shared<spdlog::sinks::stderr_color_sink_mt>());
  logger->set_pattern("%Y-%m-%d %H:%M:%S.%e %^%l%$ %v");
  if (format == "json") logger->set_formatter(std::make_unique<JsonFormatter>());
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
